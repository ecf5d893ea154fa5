package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import scala.util.control.NonFatal

import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}
import org.apache.spark.comet.memory.{CometShuffleMemoryAllocator, Spillable}
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{BaseShuffleHandle, ShuffleWriteMetricsReporter, ShuffleWriter}
import org.apache.spark.shuffle.api.{ShuffleExecutorComponents, ShuffleMapOutputWriter}
import org.apache.spark.shuffle.checksum.ShuffleChecksumSupport
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** Writes rows as columnar blocks with one [[CometDiskBlockWriter]] for each partition that has rows. The partitions of
  * a task share memory: when a page is denied, the largest holder spills. At the end the blocks go to the final file in
  * the order of partitions, through Spark's own index, checksum and commit.
  */
class CometBypassMergeSortShuffleWriter[K, V](
    handle: BaseShuffleHandle[K, V, V],
    mapId: Long,
    context: TaskContext,
    writeMetrics: ShuffleWriteMetricsReporter,
    executorComponents: ShuffleExecutorComponents
) extends ShuffleWriter[K, V] with DiskBlockWriterTask with Spillable with ShuffleChecksumSupport
    with Logging {

  private val dependency: ShuffleDependency[K, V, V] = handle.dependency
  private val serializer = dependency.serializer.asInstanceOf[CometShuffleSerializer]
  private val numPartitions = dependency.partitioner.numPartitions
  private val env = SparkEnv.get
  private val blockManager = env.blockManager
  private val memoryManager = context.taskMemoryManager()
  private val maxPageSize =
    math.min(CometDiskBlockWriter.MaxPageSize, memoryManager.pageSizeBytes())
  private val checksums = createPartitionChecksums(numPartitions, env.conf)
  private val rowChecksums = ShuffleShims.rowChecksums(dependency)

  private val allocator =
    new CometShuffleMemoryAllocator(memoryManager, CometDiskBlockWriter.InitialPageSize)
  private val spillFile = new SpillFile(blockManager.diskBlockManager, env.serializerManager)
  private val blocks = new EncodedBlocks(numPartitions, allocator, spillFile, maxPageSize)
  private val encoder = new RowEncoder(serializer, memoryManager)
  private val writers = new Array[CometDiskBlockWriter](numPartitions)

  private var partitionLengths: Array[Long] = _
  private var mapStatus: Option[MapStatus] = None
  private var closed = false
  private var failedSpill: Option[Throwable] = None

  allocator.setSpillable(this)
  context.addTaskCompletionListener[Unit](_ => close())

  override def write(records: Iterator[Product2[K, V]]): Unit = {
    val output = executorComponents.createMapOutputWriter(
      dependency.shuffleId,
      mapId,
      numPartitions
    )
    try {
      insertAll(records)
      allocator.exclusively {
        // An operator that asked for the memory may have taken the failure for a denial.
        failedSpill.foreach(throw _)
        if (writers.exists(_ != null)) {
          writePartitions(output)
        }
        commit(output)
      }
    } catch {
      case e: Throwable =>
        try output.abort(e)
        catch { case NonFatal(suppressed) => e.addSuppressed(suppressed) }
        throw e
    } finally
      close()
  }

  private def insertAll(records: Iterator[Product2[K, V]]): Unit = {
    var rows = 0L
    var bytes = 0L
    while (records.hasNext) {
      val record = records.next()
      val partition = dependency.partitioner.getPartition(record._1)
      val row = record._2.asInstanceOf[UnsafeRow]
      allocator.exclusively {
        writer(partition).insertRow(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
      }
      rowChecksums.update(partition, record._1, row)
      rows += 1
      bytes += row.getSizeInBytes
    }
    serializer.metrics.dataSize.add(bytes)
    writeMetrics.incRecordsWritten(rows)
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

  override def addBlocks(partition: Int, encoded: ByteBuffer): Unit = {
    context.killTaskIfInterrupted()
    val written = blocks.add(partition, encoded)
    if (written > 0) {
      countSpill(memory = 0, disk = written)
    }
  }

  override def makeRoom(bytes: Long): Boolean = spill(bytes) > 0

  /** Spills the largest holders of memory, blocks that wait or rows of a partition, until `bytes` are free. */
  override def spill(bytes: Long): Long =
    try spillLargest(bytes)
    catch {
      case e: Throwable =>
        failedSpill = failedSpill.orElse(Some(e))
        throw e
    }

  private def spillLargest(bytes: Long): Long = {
    context.killTaskIfInterrupted()
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

  private def countSpill(memory: Long, disk: Long): Unit = {
    serializer.metrics.spillCount.add(1)
    serializer.metrics.spillSize.add(disk)
    context.taskMetrics().incMemoryBytesSpilled(memory)
    context.taskMetrics().incDiskBytesSpilled(disk)
    logDebug(s"Task ${context.taskAttemptId()} spilled $memory bytes of memory as $disk bytes")
  }

  private def writePartitions(output: ShuffleMapOutputWriter): Unit = {
    var partition = 0
    while (partition < numPartitions) {
      if (writers(partition) != null) {
        context.killTaskIfInterrupted()
        writePartition(output, partition)
      }
      partition += 1
    }
  }

  private def writePartition(output: ShuffleMapOutputWriter, partition: Int): Unit = {
    val checksum = if (checksums.isEmpty) null else checksums(partition)
    // The last rows are encoded before the clock of writing starts.
    val tail =
      if (writers(partition).numRows > 0) writers(partition).writeOut(last = true)
      else encoder.encodeEnd()
    timedWrite {
      val target = PartitionOutput.open(
        output.getPartitionWriter(partition),
        env.serializerManager,
        checksum
      )
      try {
        blocks.read(partition, target)
        target.write(tail)
      } finally
        target.close()
    }
  }

  private def timedWrite[T](body: => T): T = {
    val start = System.nanoTime()
    try body
    finally writeMetrics.incWriteTime(System.nanoTime() - start)
  }

  private def commit(output: ShuffleMapOutputWriter): Unit = {
    partitionLengths =
      timedWrite(output.commitAllPartitions(getChecksumValues(checksums))).getPartitionLengths
    writeMetrics.incBytesWritten(partitionLengths.sum)
    mapStatus = Some(ShuffleShims.mapStatus(
      blockManager.shuffleServerId,
      partitionLengths,
      mapId,
      rowChecksums
    ))
  }

  override def getPartitionLengths(): Array[Long] = partitionLengths

  override def stop(success: Boolean): Option[MapStatus] = {
    close()
    if (success) mapStatus else None
  }

  /** Gives memory, native encoder and spill file back, however the task ends. */
  private def close(): Unit = if (!closed) {
    closed = true
    context.taskMetrics().incPeakExecutionMemory(allocator.peakMemory + encoder.peakMemory)
    try {
      writers.iterator.filter(_ != null).foreach(_.freePages())
      blocks.freePages()
    } finally
      try encoder.close()
      finally spillFile.close()
  }
}
