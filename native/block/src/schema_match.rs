//! Compares the schema message of a payload with the reader's schema.
//!
//! Arrow's own conversion of a schema message panics on one that isn't well formed, so the message
//! is compared where it lies. Metadata is not compared: it says nothing about the layout.

use arrow_ipc as ipc;
use arrow_ipc::{Message, MessageHeader};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, TimeUnit};

use crate::BlockError;

/// Checks that `message` holds `schema`: names, types and nullability.
pub(crate) fn check(message: Message<'_>, schema: &Schema) -> Result<(), BlockError> {
    let found = (message.header_type() == MessageHeader::Schema)
        .then(|| message.header_as_schema())
        .flatten()
        .ok_or_else(|| {
            BlockError::corrupt(format!(
                "expected a schema message, found {:?}",
                message.header_type()
            ))
        })?;
    if found.endianness() != ipc::Endianness::Little {
        return Err(BlockError::corrupt("payload is not little-endian"));
    }
    let expected = schema.fields();
    let fields = found.fields();
    let length = fields.as_ref().map_or(0, |fields| fields.len());
    if length != expected.len() {
        return Err(BlockError::corrupt(format!(
            "expected {} columns in the payload, found {length}",
            expected.len()
        )));
    }
    for (field, expected) in fields.into_iter().flatten().zip(expected) {
        check_field(field, expected)?;
    }
    Ok(())
}

fn check_field(found: ipc::Field<'_>, expected: &Field) -> Result<(), BlockError> {
    let same_name = found.name() == Some(expected.name().as_str());
    if !same_name || found.nullable() != expected.is_nullable() || found.dictionary().is_some() {
        return Err(differs(found, expected));
    }
    let (same_type, children) = same_type(found, expected.data_type());
    let found_children = found.children();
    let length = found_children.as_ref().map_or(0, |children| children.len());
    if !same_type || length != children.len() {
        return Err(differs(found, expected));
    }
    for (child, expected) in found_children.into_iter().flatten().zip(children) {
        check_field(child, expected)?;
    }
    Ok(())
}

fn differs(found: ipc::Field<'_>, expected: &Field) -> BlockError {
    BlockError::corrupt(format!(
        "expected column {:?} of type {} (nullable: {}) in the payload, found {:?} of type {:?} \
         (nullable: {}) or with other parameters",
        expected.name(),
        expected.data_type(),
        expected.is_nullable(),
        found.name(),
        found.type_type(),
        found.nullable()
    ))
}

/// Whether the type itself is the same, and which children it should have.
fn same_type<'a>(found: ipc::Field<'_>, expected: &'a DataType) -> (bool, &'a [FieldRef]) {
    use DataType as T;
    let one = std::slice::from_ref::<FieldRef>;
    let is = |tag: ipc::Type| found.type_type() == tag;
    match expected {
        T::Null => (is(ipc::Type::Null), &[]),
        T::Boolean => (is(ipc::Type::Bool), &[]),
        T::Int8 => (is_int(found, 8, true), &[]),
        T::Int16 => (is_int(found, 16, true), &[]),
        T::Int32 => (is_int(found, 32, true), &[]),
        T::Int64 => (is_int(found, 64, true), &[]),
        T::UInt8 => (is_int(found, 8, false), &[]),
        T::UInt16 => (is_int(found, 16, false), &[]),
        T::UInt32 => (is_int(found, 32, false), &[]),
        T::UInt64 => (is_int(found, 64, false), &[]),
        T::Float16 => (is_float(found, ipc::Precision::HALF), &[]),
        T::Float32 => (is_float(found, ipc::Precision::SINGLE), &[]),
        T::Float64 => (is_float(found, ipc::Precision::DOUBLE), &[]),
        T::Decimal32(p, s) => (is_decimal(found, 32, *p, *s), &[]),
        T::Decimal64(p, s) => (is_decimal(found, 64, *p, *s), &[]),
        T::Decimal128(p, s) => (is_decimal(found, 128, *p, *s), &[]),
        T::Decimal256(p, s) => (is_decimal(found, 256, *p, *s), &[]),
        T::Date32 => (is_date(found, ipc::DateUnit::DAY), &[]),
        T::Date64 => (is_date(found, ipc::DateUnit::MILLISECOND), &[]),
        T::Time32(u) => (is_time(found, 32, *u), &[]),
        T::Time64(u) => (is_time(found, 64, *u), &[]),
        T::Timestamp(u, zone) => {
            let same = found
                .type_as_timestamp()
                .is_some_and(|t| t.unit() == unit(*u) && t.timezone() == zone.as_deref());
            (same, &[])
        }
        T::Duration(u) => {
            let same = found
                .type_as_duration()
                .is_some_and(|t| t.unit() == unit(*u));
            (same, &[])
        }
        T::Interval(u) => {
            let same = found
                .type_as_interval()
                .is_some_and(|t| t.unit() == interval_unit(*u));
            (same, &[])
        }
        T::Binary => (is(ipc::Type::Binary), &[]),
        T::LargeBinary => (is(ipc::Type::LargeBinary), &[]),
        T::Utf8 => (is(ipc::Type::Utf8), &[]),
        T::LargeUtf8 => (is(ipc::Type::LargeUtf8), &[]),
        T::FixedSizeBinary(n) => {
            let same = found
                .type_as_fixed_size_binary()
                .is_some_and(|t| t.byteWidth() == *n);
            (same, &[])
        }
        T::List(child) => (is(ipc::Type::List), one(child)),
        T::LargeList(child) => (is(ipc::Type::LargeList), one(child)),
        T::FixedSizeList(child, n) => {
            let same = found
                .type_as_fixed_size_list()
                .is_some_and(|t| t.listSize() == *n);
            (same, one(child))
        }
        T::Map(entries, sorted) => {
            let same = found
                .type_as_map()
                .is_some_and(|t| t.keysSorted() == *sorted);
            (same, one(entries))
        }
        T::Struct(children) => (is(ipc::Type::Struct_), children),
        _ => (false, &[]),
    }
}

fn is_int(found: ipc::Field<'_>, bits: i32, signed: bool) -> bool {
    found
        .type_as_int()
        .is_some_and(|t| t.bitWidth() == bits && t.is_signed() == signed)
}

fn is_float(found: ipc::Field<'_>, precision: ipc::Precision) -> bool {
    found
        .type_as_floating_point()
        .is_some_and(|t| t.precision() == precision)
}

fn is_decimal(found: ipc::Field<'_>, bits: i32, precision: u8, scale: i8) -> bool {
    found.type_as_decimal().is_some_and(|t| {
        t.bitWidth() == bits
            && t.precision() == i32::from(precision)
            && t.scale() == i32::from(scale)
    })
}

fn is_date(found: ipc::Field<'_>, unit: ipc::DateUnit) -> bool {
    found.type_as_date().is_some_and(|t| t.unit() == unit)
}

fn is_time(found: ipc::Field<'_>, bits: i32, time_unit: TimeUnit) -> bool {
    found
        .type_as_time()
        .is_some_and(|t| t.bitWidth() == bits && t.unit() == unit(time_unit))
}

fn unit(unit: TimeUnit) -> ipc::TimeUnit {
    match unit {
        TimeUnit::Second => ipc::TimeUnit::SECOND,
        TimeUnit::Millisecond => ipc::TimeUnit::MILLISECOND,
        TimeUnit::Microsecond => ipc::TimeUnit::MICROSECOND,
        TimeUnit::Nanosecond => ipc::TimeUnit::NANOSECOND,
    }
}

fn interval_unit(unit: IntervalUnit) -> ipc::IntervalUnit {
    match unit {
        IntervalUnit::YearMonth => ipc::IntervalUnit::YEAR_MONTH,
        IntervalUnit::DayTime => ipc::IntervalUnit::DAY_TIME,
        IntervalUnit::MonthDayNano => ipc::IntervalUnit::MONTH_DAY_NANO,
    }
}
