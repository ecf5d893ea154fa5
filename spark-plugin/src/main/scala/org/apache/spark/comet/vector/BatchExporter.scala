package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.{GrowingBuffer, NativeMemoryHolder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform

/** Describes batches to the native side, which copies them from where they are. Columns of our own batches are handed on
  * by reference. It must be freed.
  */
class BatchExporter(schema: StructType) extends NativeMemoryHolder {

  private val columns = schema.fields.map(field => new ColumnExporter(field.dataType))
  private val descriptor = new BatchDescriptor
  private val ids = new GrowingBuffer

  /** The address of the description of `count` rows of `batch` from row `from`, with what it refers to valid until the
    * next call.
    *
    * @param partitionIds gives the partition of a row, or null if the native side works it out
    * @param budget the bytes of values that may be collected if there is more than one row
    * @return 0 if so many rows cannot be described
    */
  def describe(
      batch: ColumnarBatch,
      from: Int,
      count: Int,
      partitionIds: RowPartitionIds,
      budget: Long
  ): Long = {
    descriptor.clear(if (count > 1) budget else Long.MaxValue)
    descriptor.append(count)
    descriptor.append(if (partitionIds == null) 0
    else collectIds(batch, from, count, partitionIds))
    try {
      var i = 0
      while (i < columns.length) {
        describeColumn(batch, i, from, count)
        i += 1
      }
    } catch {
      case _: BatchTooLargeException => return 0
    }
    descriptor.finish()
  }

  private def describeColumn(batch: ColumnarBatch, i: Int, from: Int, count: Int): Unit = {
    val array = batch.column(i) match {
      case ours: CometVector => ours.exportArray()
      case _ => 0L
    }
    if (array != 0) {
      descriptor.appendExported(array, from)
    } else {
      columns(i).describe(batch.column(i), from, count, descriptor)
    }
  }

  private def collectIds(
      batch: ColumnarBatch,
      from: Int,
      count: Int,
      partitionIds: RowPartitionIds
  ): Long = {
    ids.clear()
    val start = ids.append(count * 4L)
    var i = 0
    while (i < count) {
      Platform.putInt(null, start + i * 4L, partitionIds.of(batch.getRow(from + i)))
      i += 1
    }
    start
  }

  /** Copies bytes of an array that the descriptor refers to by number. */
  def copyArray(array: Int, from: Long, address: Long, bytes: Long): Unit =
    descriptor.copyArray(array, from, address, bytes)

  override def capacity: Long = descriptor.capacity + ids.capacity + columns.map(_.capacity).sum

  override def free(): Unit = {
    descriptor.free()
    ids.free()
    columns.foreach(_.free())
  }
}
