use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, IntervalUnit, Schema, SortOptions};
use datafusion_physical_expr::PhysicalExpr;

use super::normalize::normalize_floats;
use super::{Partitioner, evaluate, partition_count};
use crate::{Result, ShuffleError};

/// Spark's `RangePartitioning`: a row's partition is the number of bounds below its key, so that a
/// key equal to a bound belongs to the earlier partition.
///
/// Keys are compared as Spark does: NaN is one value above all others, both zeros are equal, bytes
/// are unsigned. Strings with a collation must not come here.
#[derive(Debug)]
pub struct RangePartitioner {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    converter: RowConverter,
    bounds: Rows,
    rows: Rows,
    partitions: u32,
}

impl RangePartitioner {
    /// A partitioner by `keys` of batches of `schema` over ascending `bounds`.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Unsupported`] if Spark's order of the keys cannot be had from Arrow, if the
    /// bounds don't fit the keys or tell more partitions apart than there are, or are not
    /// ascending.
    pub fn new(
        keys: &[(Arc<dyn PhysicalExpr>, SortOptions)],
        bounds: &RecordBatch,
        partitions: usize,
        schema: &Schema,
    ) -> Result<Self> {
        let count = partition_count(partitions)?;
        if bounds.num_rows() >= partitions || bounds.num_columns() != keys.len() {
            return Err(ShuffleError::Unsupported(format!(
                "{} range bounds of {} columns for {partitions} partitions by {} keys",
                bounds.num_rows(),
                bounds.num_columns(),
                keys.len()
            )));
        }
        let mut fields = Vec::with_capacity(keys.len());
        for ((key, options), bound) in keys.iter().zip(bounds.columns()) {
            let data_type = key.data_type(schema)?;
            check(&data_type, *options)?;
            if !data_type.equals_datatype(bound.data_type()) {
                return Err(ShuffleError::Unsupported(format!(
                    "range bounds of type {} for a key of type {data_type}",
                    bound.data_type()
                )));
            }
            fields.push(SortField::new_with_options(data_type, *options));
        }
        let converter = RowConverter::new(fields)?;
        let mut rows = converter.empty_rows(0, 0);
        // Without keys the row format has nothing to convert; there can be no bounds then.
        if bounds.num_rows() > 0 {
            converter.append(&mut rows, &normalized(bounds.columns())?)?;
        }
        if !rows.iter().is_sorted() {
            return Err(ShuffleError::Unsupported(
                "range bounds that are not ascending".to_owned(),
            ));
        }
        Ok(Self {
            keys: keys.iter().map(|(key, _)| Arc::clone(key)).collect(),
            rows: converter.empty_rows(0, 0),
            bounds: rows,
            converter,
            partitions: count,
        })
    }

    fn place(&self, row: arrow_row::Row<'_>) -> usize {
        let (mut low, mut high) = (0, self.bounds.num_rows());
        while low < high {
            let middle = low.midpoint(high);
            if self.bounds.row(middle) < row {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

fn normalized(columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let columns = columns.iter().map(normalize_floats);
    Ok(columns.collect::<Result<_, _>>()?)
}

/// Inside of a key Spark puts nulls first and reverses that with the direction; Arrow puts them
/// where the option says. So a nested key needs the option that Spark has by default.
fn check(data_type: &DataType, options: SortOptions) -> Result<()> {
    match data_type {
        DataType::Struct(fields) => {
            check_nested_nulls(options)?;
            let mut types = fields.iter().map(|field| field.data_type());
            types.try_for_each(|data_type| check(data_type, options))
        }
        DataType::List(field) | DataType::LargeList(field) => {
            check_nested_nulls(options)?;
            check(field.data_type(), options)
        }
        DataType::Interval(IntervalUnit::DayTime | IntervalUnit::MonthDayNano) => {
            Err(unsupported(data_type))
        }
        DataType::Null
        | DataType::Boolean
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::Utf8
        | DataType::LargeUtf8 => Ok(()),
        other if other.is_primitive() => Ok(()),
        other => Err(unsupported(other)),
    }
}

fn unsupported(data_type: &DataType) -> ShuffleError {
    ShuffleError::Unsupported(format!("range partitioning by a key of type {data_type}"))
}

fn check_nested_nulls(options: SortOptions) -> Result<()> {
    if options.nulls_first != options.descending {
        return Ok(());
    }
    Err(ShuffleError::Unsupported(
        "range partitioning by a nested key with nulls on the other side".to_owned(),
    ))
}

impl Partitioner for RangePartitioner {
    fn partitions(&self) -> usize {
        usize::try_from(self.partitions).unwrap_or(1)
    }

    fn assign(&mut self, batch: &RecordBatch, ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        if self.bounds.num_rows() == 0 {
            ids.resize(batch.num_rows(), 0);
            return Ok(());
        }
        let keys = normalized(&evaluate(&self.keys, batch)?)?;
        self.rows.clear();
        self.converter.append(&mut self.rows, &keys)?;
        let places = self.rows.iter().map(|row| self.place(row));
        // There are fewer bounds than partitions, whose number fits.
        ids.extend(places.map(|place| u32::try_from(place).unwrap_or(u32::MAX)));
        Ok(())
    }

    fn memory_size(&self) -> usize {
        // Spark does not charge bounds either, and there may be more of them than a task has memory.
        self.rows.size()
    }
}
