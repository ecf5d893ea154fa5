//! Writes columns into rows and arrays. The type of a column is looked at once for a run of values.

use super::measure::{Holder, WIDE, fixed_words};
use super::sink::{ArrayPlace, ElementSink, FieldSink, Pick, Picked, RowPlace, Sink};
use super::values::{Column, Values};
use super::words::{Placed, WORD, Words, halves};

/// Writes rows or structs, whose places begin where their fixed part does.
pub(super) fn write_rows<P: Pick>(
    fields: &[Column],
    pick: P,
    rows: &mut [RowPlace],
    out: &mut Words,
) {
    let bitmap = fields.len().div_ceil(64);
    for (word, group) in fields.chunks(64).enumerate() {
        for (bit, field) in group.iter().enumerate() {
            let sink = FieldSink {
                rows: &mut *rows,
                pick,
                slot: bitmap + word * 64 + bit,
                bit: 1 << bit,
                reserved: reserved(&field.values),
            };
            if let Values::Null = field.values {
                for row in &mut *sink.rows {
                    row.nulls |= sink.bit;
                }
            }
            write(field, sink, out);
        }
        for row in &mut *rows {
            out.put(row.start + word, std::mem::take(&mut row.nulls));
        }
    }
}

/// What values that can be updated in place keep free for that.
fn reserved(values: &Values) -> Option<Placed> {
    let bytes = match values {
        Values::WideDecimal(_) => 0,
        Values::Calendar(..) => WIDE * WORD,
        _ => return None,
    };
    Some(Placed { bytes, words: WIDE })
}

fn write_arrays(element: &Column, arrays: &[ArrayPlace], out: &mut Words) {
    let sink = ElementSink(arrays);
    sink.headers(element.nulls, out, matches!(element.values, Values::Null));
    write(element, sink, out);
}

fn write<S: Sink>(column: &Column, sink: S, out: &mut Words) {
    let nulls = column.nulls;
    match &column.values {
        Values::Null => sink.fixed(nulls, out, |_| 0_u64),
        Values::Boolean(bits) => {
            sink.fixed(nulls, out, |at| u8::from(at < bits.len() && bits.value(at)));
        }
        Values::Int8(values) => sink.fixed(nulls, out, get(values)),
        Values::Int16(values) => sink.fixed(nulls, out, get(values)),
        Values::Int32(values) => sink.fixed(nulls, out, get(values)),
        Values::Int64(values) => sink.fixed(nulls, out, get(values)),
        Values::Float32(values) => sink.fixed(nulls, out, get(values)),
        Values::Float64(values) => sink.fixed(nulls, out, get(values)),
        Values::LongDecimal(values) => {
            let get = get(values);
            sink.fixed(nulls, out, |at| {
                let [_, low] = halves(get(at));
                low
            });
        }
        Values::WideDecimal(values) => {
            let get = get(values);
            sink.beside(nulls, out, |out, at, place, _| {
                if S::HOLDER == Holder::Row {
                    out.clear(place, WIDE);
                }
                out.put_decimal(place, get(at))
            });
        }
        Values::Bytes(blobs) => sink.beside(nulls, out, |out, at, place, room| {
            let (start, _) = blobs.span(at);
            out.put_bytes(place, room, blobs.data, start, blobs.len(at))
        }),
        Values::Calendar(months, days, microseconds) => {
            let (months, days, microseconds) = (get(months), get(days), get(microseconds));
            sink.beside(nulls, out, |out, at, place, _| {
                let parts = [
                    &months(at).to_le_bytes()[..],
                    &days(at).to_le_bytes(),
                    &microseconds(at).to_le_bytes(),
                ];
                out.put_parts(place, &parts)
            });
        }
        Values::Variant(value, metadata) => sink.beside(nulls, out, |out, at, place, _| {
            let value = value.get(at);
            let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
            out.put_parts(place, &[&length.to_le_bytes(), value, metadata.get(at)])
        }),
        Values::Struct(fields) => {
            let mut values = Vec::new();
            let mut rows = Vec::new();
            sink.beside(nulls, out, |_, at, start, _| {
                values.push(at);
                rows.push(RowPlace {
                    start,
                    next: start + fixed_words(fields.len()),
                    end: start + column.nested_words(at),
                    nulls: 0,
                });
                column.placed(at)
            });
            write_rows(fields, Picked(&values), &mut rows, out);
        }
        Values::List(offsets, element) => {
            let mut arrays = Vec::new();
            sink.beside(nulls, out, |_, at, start, _| {
                arrays.push(array(offsets.span(at), start));
                column.placed(at)
            });
            write_arrays(element, &arrays, out);
        }
        Values::Map(offsets, keys, values) => {
            let mut key_arrays = Vec::new();
            let mut value_arrays = Vec::new();
            sink.beside(nulls, out, |out, at, start, _| {
                let span = offsets.span(at);
                let key_words = keys.array_words(span.0, span.1);
                out.put(start, (key_words * WORD) as u64);
                key_arrays.push(array(span, start + 1));
                value_arrays.push(array(span, start + 1 + key_words));
                column.placed(at)
            });
            write_arrays(keys, &key_arrays, out);
            write_arrays(values, &value_arrays, out);
        }
    }
}

impl Column<'_> {
    /// A nested value, which fills all of its words.
    fn placed(&self, value: usize) -> Placed {
        let words = self.nested_words(value);
        Placed {
            bytes: words * WORD,
            words,
        }
    }
}

fn array((first, end): (usize, usize), start: usize) -> ArrayPlace {
    ArrayPlace {
        start,
        first,
        count: end.saturating_sub(first),
    }
}

#[inline(always)]
fn get<T: Copy + Default>(values: &[T]) -> impl Fn(usize) -> T {
    |at| values.get(at).copied().unwrap_or_default()
}
