//! Random schemas and values from a seed.

use comet_row::{SparkField, SparkType};

use super::{Value, array_of, map_of};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    pub fn bytes(&mut self, max: usize) -> Vec<u8> {
        (0..self.below(max + 1))
            .map(|_| self.bits() as u8)
            .collect()
    }

    /// One of the given bits or any others.
    fn pick(&mut self, special: &[u64]) -> u64 {
        if self.below(2) == 0 {
            special[self.below(special.len())]
        } else {
            self.bits()
        }
    }

    pub fn fields(&mut self, max: usize, depth: usize) -> Vec<SparkField> {
        let count = self.below(max + 1);
        let field = |_| SparkField {
            // Few names, so that some repeat.
            name: ["a", "b", "", "ü"][self.below(4)].to_owned(),
            data_type: self.data_type(depth),
        };
        (0..count).map(field).collect()
    }

    pub fn data_type(&mut self, depth: usize) -> SparkType {
        let precision = 1 + self.below(38) as u8;
        match self.below(if depth == 0 { 19 } else { 25 }) {
            0 => SparkType::Null,
            1 => SparkType::Boolean,
            2 => SparkType::Byte,
            3 => SparkType::Short,
            4 => SparkType::Int,
            5 => SparkType::Long,
            6 => SparkType::Float,
            7 => SparkType::Double,
            8 => SparkType::Decimal {
                precision,
                scale: self.below(1 + precision as usize) as i8,
            },
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
            19 | 20 => SparkType::Struct(self.fields(4, depth - 1)),
            21 | 22 => array_of(self.data_type(depth - 1)),
            _ => {
                let key = match self.data_type(depth - 1) {
                    SparkType::Null => SparkType::Long,
                    key => key,
                };
                map_of(key, self.data_type(depth - 1))
            }
        }
    }

    pub fn row(&mut self, fields: &[SparkField], nulls: usize) -> Vec<Value> {
        fields
            .iter()
            .map(|field| self.value(&field.data_type, nulls))
            .collect()
    }

    /// A value that is null in `nulls` of 8 cases.
    pub fn value(&mut self, ty: &SparkType, nulls: usize) -> Value {
        if self.below(8) < nulls {
            Value::Null
        } else {
            self.present(ty, nulls)
        }
    }

    fn present(&mut self, ty: &SparkType, nulls: usize) -> Value {
        let long = self.pick(&[0, 1, u64::MAX, i64::MIN as u64, i64::MAX as u64]);
        match ty {
            SparkType::Null => Value::Null,
            SparkType::Boolean => Value::Boolean(long & 1 == 1),
            SparkType::Byte => Value::Byte(long as i8),
            SparkType::Short => Value::Short(long as i16),
            SparkType::Int | SparkType::Date | SparkType::YearMonthInterval => {
                Value::Int(self.pick(&[i32::MIN as u64, i32::MAX as u64, u64::MAX]) as i32)
            }
            SparkType::Float => {
                let nan = 0xffc0_1234;
                Value::Float(self.pick(&[0x8000_0000, 0x7fa0_0001, nan, 0x7f80_0000]) as u32)
            }
            SparkType::Double => {
                let signalling = 0x7ff4_0000_dead_beef;
                Value::Double(self.pick(&[1 << 63, signalling, 0xfff8_0000_0000_0001, 1]))
            }
            SparkType::Decimal {
                precision: ..=18, ..
            } => Value::Decimal(long as i64 as i128),
            SparkType::Decimal { .. } => Value::Decimal(match self.below(4) {
                0 => i128::MIN,
                1 => i128::MAX,
                2 => long as i64 as i128,
                _ => {
                    let all = i128::from(self.bits()) << 64 | i128::from(self.bits());
                    all >> self.below(128)
                }
            }),
            SparkType::String | SparkType::Binary => Value::Bytes(self.bytes(40)),
            SparkType::CalendarInterval => Value::Calendar(long as i32, !long as i32, long as i64),
            SparkType::Variant => Value::Variant(self.bytes(12), self.bytes(12)),
            SparkType::Struct(fields) => Value::Struct(self.row(fields, nulls)),
            SparkType::Array(element) => {
                // Long ones now and then, to cross bitmap words.
                let count = if self.below(16) == 0 {
                    self.below(140)
                } else {
                    self.below(5)
                };
                Value::Array((0..count).map(|_| self.value(element, nulls)).collect())
            }
            SparkType::Map(key, value) => {
                let keys: Vec<_> = (0..self.below(5))
                    .map(|_| self.present(key, nulls))
                    .collect();
                let values = keys.iter().map(|_| self.value(value, nulls)).collect();
                Value::Map(keys, values)
            }
            _ => Value::Long(long as i64),
        }
    }
}
