package org.apache.spark.comet.shuffle

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.comet.NativeShuffleTask
import org.apache.spark.comet.memory.{NativeMemoryReservation, NativeShuffleMemory}
import org.apache.spark.comet.vector.BatchExporter
import org.apache.spark.sql.vectorized.ColumnarBatch

/** A task for the native writer: its batches, its memory, its files. */
private class NativeWriterTask(
    batches: Iterator[ColumnarBatch],
    serializer: CometShuffleSerializer,
    memory: NativeShuffleMemory,
    context: TaskContext
) extends NativeShuffleTask {

  private val exporter = new BatchExporter(serializer.schema)
  private val partitionIds = serializer.native.get.partitioning.rowPartitionIds()
  // What is laid out for the native side: a batch, until that has copied it or taken it over.
  private val reservation = new NativeMemoryReservation(context.taskMemoryManager())

  private var batch: ColumnarBatch = _
  private var from = 0
  private var count = 0
  // The most rows of this batch that are described at once: it was cut before if they are fewer than it has.
  private var most = 0
  // The bytes that what is described at once may take.
  private var budget = 0L

  override def nextBatch(budget: Long): Long = {
    this.budget = budget
    context.killTaskIfInterrupted()
    from += count
    count = 0
    while (batch == null || from >= batch.numRows()) {
      if (!batches.hasNext) {
        batch = null
        return 0
      }
      batch = batches.next()
      from = 0
      most = batch.numRows()
    }
    count = math.min(most, batch.numRows() - from)
    describe()
  }

  override def splitBatch(): Long = {
    halve()
    describe()
  }

  private def describe(): Long = {
    var address = 0L
    do {
      address = exporter.describe(batch, from, count, partitionIds, budget)
      if (address == 0) halve()
    } while (address == 0)
    reservation.resize(exporter.capacity)
    address
  }

  private def halve(): Unit = {
    if (count <= 1) {
      throw new UnsupportedOperationException("A row has a column of more than 2 GiB")
    }
    count /= 2
    most = count
  }

  override def copyArray(array: Long, offset: Long, address: Long, bytes: Long): Unit =
    exporter.copyArray(array.toInt, offset, address, bytes)

  override def acquireMemory(bytes: Long): Long = memory.acquireMemory(bytes)

  override def releaseMemory(bytes: Long): Unit = memory.freeMemory(bytes)

  override def memoryLimit(): Long = memory.limit

  override def spillFile(): String =
    SparkEnv.get.blockManager.diskBlockManager.createTempShuffleBlock()._2.getPath

  override def isKilled(): Boolean = context.isInterrupted()

  def close(): Unit = {
    exporter.free()
    reservation.release()
  }
}
