//! Random arrays.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray,
    FixedSizeListArray, Float64Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray,
    LargeListArray, ListArray, MapArray, NullArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

/// The kinds of columns that [`Random::array`] makes.
pub const KINDS: usize = 17;

/// A small generator of numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn nulls(&mut self, rows: usize) -> Option<NullBuffer> {
        let share = [0, 2, 10][self.below(3)];
        (share > 0).then(|| {
            let valid = (0..rows).map(|_| !self.one_in(share));
            NullBuffer::from(valid.collect::<Vec<_>>())
        })
    }

    fn bytes(&mut self) -> Vec<u8> {
        let longest = if self.one_in(500) { 20_000 } else { 12 };
        let length = self.below(longest);
        (0..length).map(|_| b'a' + self.below(26) as u8).collect()
    }

    fn offsets(&mut self, rows: usize) -> OffsetBuffer<i32> {
        OffsetBuffer::from_lengths((0..rows).map(|_| self.below(4)))
    }

    pub fn array(&mut self, kind: usize, rows: usize) -> ArrayRef {
        macro_rules! each {
            ($array:ty, $value:expr) => {{
                let nulls = self.nulls(rows);
                let values = (0..rows).map(|row| {
                    let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    let make: fn(&mut Self) -> _ = $value;
                    valid.then(|| make(self))
                });
                Arc::new(values.collect::<$array>())
            }};
        }
        match kind {
            0 => Arc::new(NullArray::new(rows)),
            1 => each!(BooleanArray, |random| random.one_in(2)),
            2 => each!(Int16Array, |random| random.next() as i16),
            3 => each!(Int32Array, |random| random.next() as i32),
            4 => each!(Float64Array, |random| random.next() as f64 - 1e18),
            5 => each!(Decimal128Array, |random| i128::from(random.next())),
            6 => each!(TimestampMicrosecondArray, |random| random.next() as i64),
            7 => each!(BinaryArray, Self::bytes),
            8 => each!(LargeBinaryArray, Self::bytes),
            9 => each!(StringArray, |random| String::from_utf8(random.bytes())
                .unwrap()),
            10 => {
                let bytes = (0..rows * 3).map(|_| self.next() as u8).collect::<Vec<_>>();
                Arc::new(FixedSizeBinaryArray::new(3, bytes.into(), self.nulls(rows)))
            }
            11 => self.list(3, rows),
            12 => self.list(9, rows),
            13 => {
                let offsets = (0..rows).map(|_| self.below(4)).collect::<Vec<_>>();
                let offsets = OffsetBuffer::<i64>::from_lengths(offsets);
                let items = self.array(7, *offsets.last().unwrap() as usize);
                let field = Field::new("item", items.data_type().clone(), true);
                let nulls = self.nulls(rows);
                Arc::new(LargeListArray::new(Arc::new(field), offsets, items, nulls))
            }
            14 => {
                let items = self.array(1, rows * 2);
                let field = Field::new("item", items.data_type().clone(), true);
                let nulls = self.nulls(rows);
                Arc::new(FixedSizeListArray::new(Arc::new(field), 2, items, nulls))
            }
            15 => Arc::new(self.fields(&[3, 0, 12, 9], rows)),
            _ => {
                let offsets = self.offsets(rows);
                let length = *offsets.last().unwrap() as usize;
                let keys = Arc::new(Int64Array::from_iter_values(0..length as i64)) as ArrayRef;
                let values = self.array(15, length);
                let fields = Fields::from(vec![
                    Field::new("key", DataType::Int64, false),
                    Field::new("value", values.data_type().clone(), true),
                ]);
                let entries = StructArray::new(fields.clone(), vec![keys, values], None);
                let field = Field::new("entries", DataType::Struct(fields), false);
                let nulls = self.nulls(rows);
                Arc::new(MapArray::new(
                    Arc::new(field),
                    offsets,
                    entries,
                    nulls,
                    false,
                ))
            }
        }
    }

    fn list(&mut self, kind: usize, rows: usize) -> ArrayRef {
        let offsets = self.offsets(rows);
        let items = self.array(kind, *offsets.last().unwrap() as usize);
        let field = Field::new("item", items.data_type().clone(), true);
        let nulls = self.nulls(rows);
        Arc::new(ListArray::new(Arc::new(field), offsets, items, nulls))
    }

    fn fields(&mut self, kinds: &[usize], rows: usize) -> StructArray {
        let columns: Vec<_> = kinds.iter().map(|kind| self.array(*kind, rows)).collect();
        let fields = columns.iter().enumerate();
        let fields =
            fields.map(|(n, column)| Field::new(format!("f{n}"), column.data_type().clone(), true));
        StructArray::new(fields.collect(), columns, self.nulls(rows))
    }
}
