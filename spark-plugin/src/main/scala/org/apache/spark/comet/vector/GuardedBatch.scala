package org.apache.spark.comet.vector

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

/** A batch that has no more rows once its task is over. Whoever reads rows of a batch asks for their number first, again
  * each time that it goes on with them, which is how the guard learns of the thread.
  */
private final class GuardedBatch(columns: Array[ColumnVector], guard: ReadGuard)
    extends ColumnarBatch(columns) {

  override def numRows(): Int = if (guard.enter()) super.numRows() else 0

  override def rowIterator(): java.util.Iterator[InternalRow] = {
    val rows = super.rowIterator()
    new java.util.Iterator[InternalRow] {
      override def hasNext: Boolean = guard.enter() && rows.hasNext
      override def next(): InternalRow = rows.next()
    }
  }
}
