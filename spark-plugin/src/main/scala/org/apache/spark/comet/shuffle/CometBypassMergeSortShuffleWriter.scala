package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import org.apache.spark.TaskContext
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter
import org.apache.spark.shuffle.api.ShuffleExecutorComponents
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** Writes rows as columnar blocks with one [[CometDiskBlockWriter]] for each partition that has rows. The partitions of
  * a task share memory: when a page is denied, the largest holder spills. At the end the blocks go to the final file in
  * the order of partitions.
  */
class CometBypassMergeSortShuffleWriter[K, V](
    handle: CometShuffleHandle[K, V],
    mapId: Long,
    context: TaskContext,
    writeMetrics: ShuffleWriteMetricsReporter,
    executorComponents: ShuffleExecutorComponents
) extends CometRowShuffleWriter[K, V](
      handle,
      mapId,
      context,
      writeMetrics,
      executorComponents,
      CometDiskBlockWriter.InitialPageSize
    ) with DiskBlockWriterTask {

  private val maxPageSize =
    math.min(CometDiskBlockWriter.MaxPageSize, context.taskMemoryManager().pageSizeBytes())
  private val blocks = new EncodedBlocks(numPartitions, allocator, spillFile, maxPageSize)
  private val writers = new Array[CometDiskBlockWriter](numPartitions)
  private var rowsInMemory = 0L

  override protected def numRows: Long = rowsInMemory

  override protected def memoryUsed: Long = allocator.getUsed

  override protected def insertRow(partition: Int, row: UnsafeRow): Unit = {
    writer(partition).insertRow(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    rowsInMemory += 1
  }

  private def writer(partition: Int): CometDiskBlockWriter = {
    if (writers(partition) == null) {
      writers(partition) = new CometDiskBlockWriter(
        partition,
        allocator,
        encoder,
        this,
        CometDiskBlockWriter.InitialPageSize,
        maxPageSize,
        serializer.settings.rowsPerBlock
      )
    }
    writers(partition)
  }

  override def addBlocks(partition: Int, rows: Int, encoded: ByteBuffer): Unit = {
    context.killTaskIfInterrupted()
    rowsInMemory -= rows
    val written = blocks.add(partition, encoded)
    if (written > 0) {
      countSpill(memory = 0, disk = written)
    }
  }

  override def makeRoom(bytes: Long): Boolean = spill(bytes) > 0

  /** Spills the largest holders of memory, blocks that wait or rows of a partition, until `bytes` are free. */
  override protected def spillRows(bytes: Long): Long = {
    var freed = 0L
    var exhausted = false
    while (freed < bytes && !exhausted) {
      val partition = largestWriter()
      val largest = if (partition < 0) 0L else writers(partition).memoryUsed
      if (largest == 0 && blocks.memoryUsed == 0) {
        exhausted = true
      } else if (blocks.memoryUsed >= largest) {
        val (written, memory) = timedWrite(blocks.spill())
        countSpill(memory, written)
        freed += memory
      } else {
        val encoded = writers(partition).encodeRows(last = false)
        val written = timedWrite(blocks.addToFile(partition, encoded))
        rowsInMemory -= writers(partition).numRows
        freed += writers(partition).freePages()
        countSpill(largest, written)
      }
    }
    freed
  }

  private def largestWriter(): Int = {
    var largest = -1
    var partition = 0
    while (partition < numPartitions) {
      val candidate = writers(partition)
      if (
        candidate != null && candidate.numRows > 0 &&
        (largest < 0 || candidate.memoryUsed > writers(largest).memoryUsed)
      ) {
        largest = partition
      }
      partition += 1
    }
    largest
  }

  override protected def writePartitions(output: MapOutput): Unit = {
    var partition = 0
    while (partition < numPartitions) {
      if (writers(partition) != null) {
        context.killTaskIfInterrupted()
        writePartition(output, partition)
      }
      partition += 1
    }
  }

  private def writePartition(output: MapOutput, partition: Int): Unit = {
    // The last rows are encoded before the clock of writing starts.
    val tail =
      if (writers(partition).numRows > 0) writers(partition).writeOut(last = true)
      else encoder.encodeEnd()
    timedWrite {
      val sink = output.sink(partition)
      blocks.read(partition, sink)
      sink.write(tail)
      output.close()
    }
  }

  override protected def freeMemory(): Unit = {
    writers.iterator.filter(_ != null).foreach(_.freePages())
    blocks.freePages()
  }
}
