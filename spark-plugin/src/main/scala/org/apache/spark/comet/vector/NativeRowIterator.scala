package org.apache.spark.comet.vector

import org.apache.spark.TaskContext
import org.apache.spark.comet.memory.NativeMemoryReservation
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform

/** The rows of a decoder's batches, made in native code a piece at a time that the CPU's cache holds. There is one row
  * object, as with Spark's projections, and its bytes live until the piece is read.
  *
  * @param onBatch called with each batch before its rows
  */
final class NativeRowIterator(
    batches: Iterator[ColumnarBatch],
    fields: Int,
    onBatch: ColumnarBatch => Unit,
    context: TaskContext
) extends Iterator[InternalRow] {

  private val reservation = new NativeMemoryReservation(context.taskMemoryManager())
  private val row = new UnsafeRow(fields)
  private val written = new Array[Long](3)
  private var columns: CometColumns = _
  // Rows of the batch that were not written yet begin here.
  private var unwritten = 0
  private var rowsOfBatch = 0
  // Rows that were written and not read yet: how many, where the first is and where its length is.
  private var left = 0
  private var address = 0L
  private var lengths = 0L

  context.addTaskCompletionListener[Unit] { _ =>
    context.taskMetrics().incPeakExecutionMemory(reservation.peakMemory)
    reservation.release()
  }

  // A row that was there is gone with the task.
  override def hasNext: Boolean = if (left > 0) columns.guard.enter() else writeMore()

  override def next(): InternalRow = {
    if (left == 0 && !writeMore()) {
      throw new NoSuchElementException("end of the shuffle's rows")
    }
    val length = Platform.getInt(null, lengths)
    row.pointTo(null, address, length)
    address += length
    lengths += 4
    left -= 1
    row
  }

  private def writeMore(): Boolean = {
    while (unwritten == rowsOfBatch && batches.hasNext)
      start(batches.next())
    if (unwritten < rowsOfBatch && columns.guard.enter()) {
      left = columns.writeRows(unwritten, NativeRowIterator.PieceBytes, written)
      unwritten += left
      address = written(0)
      lengths = written(1)
      reservation.resize(written(2))
    }
    left > 0
  }

  private def start(batch: ColumnarBatch): Unit = {
    onBatch(batch)
    columns = CometColumns
      .of(batch)
      .getOrElse(throw new IllegalStateException("the batch does not come from a shuffle of ours"))
    unwritten = 0
    rowsOfBatch = batch.numRows()
  }
}

private object NativeRowIterator {

  /** Less than the second-level cache of a core. */
  val PieceBytes: Long = 256L << 10
}
