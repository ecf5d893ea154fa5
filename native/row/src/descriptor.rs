//! Reads the schema descriptor that the JVM sends; the format is drawn at [`SparkSchema::parse`].
//!
//! [`SparkSchema::parse`]: crate::SparkSchema::parse

use crate::error::RowError;
use crate::schema::{SparkField, SparkType};

/// Types may nest this deep. Building and reading recurse, so this bounds the stack.
const MAX_DEPTH: usize = 128;

/// The least bytes of a field: an empty name and a tag.
const MIN_FIELD_BYTES: usize = 3;

/// Reads a whole descriptor.
pub(crate) fn parse(descriptor: &[u8]) -> Result<Vec<SparkField>, RowError> {
    let mut reader = Reader {
        rest: descriptor,
        total: descriptor.len(),
    };
    let fields = reader.fields(0)?;
    if !reader.rest.is_empty() {
        return Err(reader.error(format!("{} bytes after the last field", reader.rest.len())));
    }
    Ok(fields)
}

struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, detail: impl Into<String>) -> RowError {
        RowError::Descriptor {
            offset: self.total - self.rest.len(),
            detail: detail.into(),
        }
    }

    fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], RowError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            let left = self.rest.len();
            return Err(self.error(format!("{what} needs {len} bytes, {left} are left")));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N], RowError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            let left = self.rest.len();
            return Err(self.error(format!("{what} needs {N} bytes, {left} are left")));
        };
        self.rest = rest;
        Ok(*taken)
    }

    fn fields(&mut self, depth: usize) -> Result<Vec<SparkField>, RowError> {
        let start = self.rest;
        let count = u32::from_le_bytes(self.bytes("a field count")?) as usize;
        // The count is checked first, so that it can't ask for more memory than the input justifies.
        if count > self.rest.len() / MIN_FIELD_BYTES {
            let left = self.rest.len();
            self.rest = start;
            return Err(self.error(format!("{count} fields can't fit in {left} bytes")));
        }
        let mut fields = Vec::with_capacity(count);
        for _ in 0..count {
            fields.push(self.field(depth)?);
        }
        Ok(fields)
    }

    fn field(&mut self, depth: usize) -> Result<SparkField, RowError> {
        let len = usize::from(u16::from_le_bytes(self.bytes("a name length")?));
        let name = self.take(len, "a name")?;
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(self.error("a field name isn't UTF-8"));
        };
        Ok(SparkField {
            name: name.to_owned(),
            data_type: self.data_type(depth)?,
        })
    }

    fn data_type(&mut self, depth: usize) -> Result<SparkType, RowError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("types nest deeper than {MAX_DEPTH} levels")));
        }
        let start = self.rest;
        let [tag] = self.bytes("a type tag")?;
        Ok(match tag {
            0 => SparkType::Null,
            1 => SparkType::Boolean,
            2 => SparkType::Byte,
            3 => SparkType::Short,
            4 => SparkType::Int,
            5 => SparkType::Long,
            6 => SparkType::Float,
            7 => SparkType::Double,
            8 => self.decimal()?,
            9 => SparkType::String,
            10 => SparkType::Binary,
            11 => SparkType::Date,
            12 => SparkType::Timestamp,
            13 => SparkType::TimestampNtz,
            14 => SparkType::Time,
            15 => SparkType::YearMonthInterval,
            16 => SparkType::DayTimeInterval,
            17 => SparkType::CalendarInterval,
            18 => SparkType::Variant,
            19 => SparkType::Struct(self.fields(depth + 1)?),
            20 => SparkType::Array(Box::new(self.data_type(depth + 1)?)),
            21 => {
                let key = Box::new(self.data_type(depth + 1)?);
                SparkType::Map(key, Box::new(self.data_type(depth + 1)?))
            }
            unknown => {
                self.rest = start;
                return Err(self.error(format!("unknown type tag {unknown}")));
            }
        })
    }

    fn decimal(&mut self) -> Result<SparkType, RowError> {
        let start = self.rest;
        let [precision] = self.bytes("a decimal precision")?;
        let scale = i8::from_le_bytes(self.bytes("a decimal scale")?);
        if !(1..=38).contains(&precision) || i16::from(scale) > i16::from(precision) {
            self.rest = start;
            return Err(self.error(format!("decimal({precision}, {scale}) is out of range")));
        }
        Ok(SparkType::Decimal { precision, scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(type_bytes: &[u8]) -> Vec<u8> {
        let mut bytes = vec![1, 0, 0, 0, 1, 0, b'c'];
        bytes.extend_from_slice(type_bytes);
        bytes
    }

    fn detail(bytes: &[u8]) -> (usize, String) {
        match parse(bytes) {
            Err(RowError::Descriptor { offset, detail }) => (offset, detail),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_every_tag() {
        for tag in (0..=18).filter(|tag| *tag != 8) {
            assert_eq!(parse(&one(&[tag])).unwrap().len(), 1);
        }
        let decimal = &parse(&one(&[8, 38, 0xff])).unwrap()[0];
        assert_eq!(
            decimal.data_type,
            SparkType::Decimal {
                precision: 38,
                scale: -1
            }
        );
        let nested = parse(&one(&[21, 9, 20, 19, 1, 0, 0, 0, 0, 0, 5])).unwrap();
        let member = SparkField {
            name: String::new(),
            data_type: SparkType::Long,
        };
        let array = SparkType::Array(Box::new(SparkType::Struct(vec![member])));
        let map = SparkType::Map(Box::new(SparkType::String), Box::new(array));
        assert_eq!(nested[0].data_type, map);
        assert!(parse(&[0, 0, 0, 0]).unwrap().is_empty());
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        assert_eq!(detail(&one(&[22])), (7, "unknown type tag 22".into()));
        assert_eq!(
            detail(&one(&[4, 4])),
            (8, "1 bytes after the last field".into())
        );
        assert_eq!(detail(&one(&[8, 39, 0])).0, 8);
        assert_eq!(
            detail(&one(&[8, 10, 11])).1,
            "decimal(10, 11) is out of range"
        );
        assert_eq!(
            detail(&[1, 0, 0, 0, 1, 0, 0xff, 4]).1,
            "a field name isn't UTF-8"
        );
        let absurd = "4294967295 fields can't fit in 3 bytes";
        assert_eq!(detail(&[255, 255, 255, 255, 0, 0, 4]), (0, absurd.into()));
    }

    #[test]
    fn refuses_every_truncation() {
        let bytes = one(&[21, 8, 20, 2, 19, 1, 0, 0, 0, 1, 0, b'x', 9]);
        parse(&bytes).unwrap();
        for len in 0..bytes.len() {
            detail(&bytes[..len]);
        }
    }

    #[test]
    fn bounds_the_nesting() {
        let nested = |levels: usize| {
            let mut bytes = vec![20; levels];
            bytes.push(4);
            one(&bytes)
        };
        parse(&nested(MAX_DEPTH)).unwrap();
        assert!(detail(&nested(MAX_DEPTH + 1)).1.contains("deeper than 128"));
        detail(&nested(1_000_000));
    }
}
