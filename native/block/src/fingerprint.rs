//! A short identity of a schema.

use std::fmt::Write;

use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};

/// The fingerprint of a schema: two schemas with different column names, types or nullability have
/// different ones, except by chance.
///
/// It is the CRC32C of a textual rendering that belongs to the block format and not to any Arrow
/// version (`docs/block-format.md` defines it). Metadata does not count.
pub fn schema_fingerprint(schema: &Schema) -> u32 {
    let mut text = String::new();
    render_fields(schema.fields().iter().map(AsRef::as_ref), &mut text);
    crc32c::crc32c(text.as_bytes())
}

fn render_fields<'a>(fields: impl Iterator<Item = &'a Field>, text: &mut String) {
    text.push('<');
    for field in fields {
        // The length makes the rendering unambiguous whatever the name holds.
        put(
            text,
            format_args!("{}:{}:", field.name().len(), field.name()),
        );
        render_type(field.data_type(), text);
        text.push(if field.is_nullable() { '?' } else { '!' });
    }
    text.push('>');
}

fn render_type(data_type: &DataType, text: &mut String) {
    match data_type {
        DataType::Null => text.push_str("null"),
        DataType::Boolean => text.push_str("bool"),
        DataType::Int8 => text.push_str("i8"),
        DataType::Int16 => text.push_str("i16"),
        DataType::Int32 => text.push_str("i32"),
        DataType::Int64 => text.push_str("i64"),
        DataType::UInt8 => text.push_str("u8"),
        DataType::UInt16 => text.push_str("u16"),
        DataType::UInt32 => text.push_str("u32"),
        DataType::UInt64 => text.push_str("u64"),
        DataType::Float16 => text.push_str("f16"),
        DataType::Float32 => text.push_str("f32"),
        DataType::Float64 => text.push_str("f64"),
        DataType::Decimal32(p, s) => put(text, format_args!("decimal32({p},{s})")),
        DataType::Decimal64(p, s) => put(text, format_args!("decimal64({p},{s})")),
        DataType::Decimal128(p, s) => put(text, format_args!("decimal128({p},{s})")),
        DataType::Decimal256(p, s) => put(text, format_args!("decimal256({p},{s})")),
        DataType::Date32 => text.push_str("date32"),
        DataType::Date64 => text.push_str("date64"),
        DataType::Time32(u) => put(text, format_args!("time32({})", unit(*u))),
        DataType::Time64(u) => put(text, format_args!("time64({})", unit(*u))),
        DataType::Timestamp(u, zone) => {
            let zone = zone.as_deref().unwrap_or_default();
            put(text, format_args!("timestamp({},{zone})", unit(*u)));
        }
        DataType::Duration(u) => put(text, format_args!("duration({})", unit(*u))),
        DataType::Interval(IntervalUnit::YearMonth) => text.push_str("interval(ym)"),
        DataType::Interval(IntervalUnit::DayTime) => text.push_str("interval(dt)"),
        DataType::Interval(IntervalUnit::MonthDayNano) => text.push_str("interval(mdn)"),
        DataType::Binary => text.push_str("binary"),
        DataType::LargeBinary => text.push_str("large_binary"),
        DataType::Utf8 => text.push_str("utf8"),
        DataType::LargeUtf8 => text.push_str("large_utf8"),
        DataType::FixedSizeBinary(n) => put(text, format_args!("fixed_binary({n})")),
        DataType::Struct(fields) => {
            text.push_str("struct");
            render_fields(fields.iter().map(AsRef::as_ref), text);
        }
        DataType::List(child) => render_list("list", child, text),
        DataType::LargeList(child) => render_list("large_list", child, text),
        DataType::FixedSizeList(child, n) => render_list(&format!("fixed_list({n})"), child, text),
        DataType::Map(entries, false) => render_list("map", entries, text),
        DataType::Map(entries, true) => render_list("sorted_map", entries, text),
        // Blocks hold no other type, so this is never compared across versions.
        other => put(text, format_args!("other({other})")),
    }
}

fn render_list(name: &str, child: &Field, text: &mut String) {
    text.push_str(name);
    render_fields(std::iter::once(child), text);
}

fn unit(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Formatting into a string cannot fail.
    let _ = text.write_fmt(arguments);
}
