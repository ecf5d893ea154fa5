package org.apache.spark.comet.vector

import org.apache.spark.sql.catalyst.InternalRow

/** Works out the partition of a row by Spark's own code. */
trait RowPartitionIds {
  def of(row: InternalRow): Int
}
