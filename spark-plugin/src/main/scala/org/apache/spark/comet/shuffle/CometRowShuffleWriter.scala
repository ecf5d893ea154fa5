package org.apache.spark.comet.shuffle

import scala.util.control.NonFatal

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.comet.memory.{CometShuffleMemoryAllocator, Spillable}
import org.apache.spark.internal.{config, Logging}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{ShuffleWriteMetricsReporter, ShuffleWriter}
import org.apache.spark.shuffle.api.ShuffleExecutorComponents
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** What both writers of rows share: the loop over the rows, Spark's thresholds for spilling, metrics, commit through
  * Spark's own index and checksum files, and giving everything back however the task ends.
  *
  * @param pageSize pages are at least this large
  */
abstract class CometRowShuffleWriter[K, V](
    handle: CometShuffleHandle[K, V],
    mapId: Long,
    protected val context: TaskContext,
    writeMetrics: ShuffleWriteMetricsReporter,
    executorComponents: ShuffleExecutorComponents,
    pageSize: Long
) extends ShuffleWriter[K, V] with Spillable with Logging {

  private val dependency = handle.dependency
  protected val serializer = dependency.serializer.asInstanceOf[CometShuffleSerializer]
  protected val numPartitions: Int = dependency.partitioner.numPartitions
  protected val env: SparkEnv = SparkEnv.get
  protected val allocator = new CometShuffleMemoryAllocator(context.taskMemoryManager(), pageSize)
  protected val encoder = new RowEncoder(serializer, context.taskMemoryManager())
  protected val spillFile = new SpillFile(env.blockManager.diskBlockManager, env.serializerManager)

  private val rowChecksums = ShuffleShims.rowChecksums(dependency)
  private val maxRows = env.conf.get(config.SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD)
  private val maxBytes = env.conf.get(config.SHUFFLE_SPILL_MAX_SIZE_FORCE_SPILL_THRESHOLD)
  private var partitionLengths: Array[Long] = _
  private var mapStatus: Option[MapStatus] = None
  private var closed = false
  private var failedSpill: Option[Throwable] = None

  allocator.setSpillable(this)
  context.addTaskCompletionListener[Unit](_ => close())

  /** Copies a row. */
  protected def insertRow(partition: Int, row: UnsafeRow): Unit

  /** Rows in memory. */
  protected def numRows: Long

  /** Bytes of memory that a spill would free. */
  protected def memoryUsed: Long

  /** Spills until `bytes` are freed or nothing is left; returns the bytes freed. */
  protected def spillRows(bytes: Long): Long

  /** Writes all rows. */
  protected def writePartitions(output: MapOutput): Unit

  /** Gives the memory of rows and blocks back. */
  protected def freeMemory(): Unit

  override def write(records: Iterator[Product2[K, V]]): Unit = {
    val writer =
      executorComponents.createMapOutputWriter(dependency.shuffleId, mapId, numPartitions)
    try {
      insertAll(records)
      allocator.exclusively {
        // An operator that asked for the memory may have taken the failure for a denial.
        failedSpill.foreach(throw _)
        val output = new MapOutput(writer, numPartitions, env.serializerManager, env.conf)
        try writePartitions(output)
        finally output.close()
        commit(output)
      }
    } catch {
      case e: Throwable =>
        try writer.abort(e)
        catch { case NonFatal(suppressed) => e.addSuppressed(suppressed) }
        throw e
    } finally
      close()
  }

  private def insertAll(records: Iterator[Product2[K, V]]): Unit = {
    val partitioner = dependency.partitioner
    var rows = 0L
    var bytes = 0L
    while (records.hasNext) {
      val record = records.next()
      val partition = partitioner.getPartition(record._1)
      val row = record._2.asInstanceOf[UnsafeRow]
      allocator.exclusively {
        if (numRows >= maxRows || memoryUsed >= maxBytes) {
          spill(Long.MaxValue)
        }
        insertRow(partition, row)
      }
      rowChecksums.update(partition, record._1, row)
      rows += 1
      bytes += row.getSizeInBytes
    }
    serializer.metrics.dataSize.add(bytes)
    writeMetrics.incRecordsWritten(rows)
  }

  /** Spills for this writer or, asked by Spark, for another consumer of the task. */
  override def spill(bytes: Long): Long =
    try {
      context.killTaskIfInterrupted()
      spillRows(bytes)
    } catch {
      case e: Throwable =>
        failedSpill = failedSpill.orElse(Some(e))
        throw e
    }

  protected def countSpill(memory: Long, disk: Long): Unit = {
    serializer.metrics.spillCount.add(1)
    serializer.metrics.spillSize.add(disk)
    context.taskMetrics().incMemoryBytesSpilled(memory)
    context.taskMetrics().incDiskBytesSpilled(disk)
    logDebug(s"Task ${context.taskAttemptId()} spilled $memory bytes of memory as $disk bytes")
  }

  protected def timedWrite[T](body: => T): T = {
    val start = System.nanoTime()
    try body
    finally writeMetrics.incWriteTime(System.nanoTime() - start)
  }

  private def commit(output: MapOutput): Unit = {
    partitionLengths = timedWrite(output.commit())
    writeMetrics.incBytesWritten(partitionLengths.sum)
    mapStatus = Some(ShuffleShims.mapStatus(
      env.blockManager.shuffleServerId,
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

  private def close(): Unit = if (!closed) {
    closed = true
    allocator.setSpillable(null)
    // Waits for a spill on another thread.
    try allocator.exclusively(freeMemory())
    finally {
      context.taskMetrics().incPeakExecutionMemory(allocator.peakMemory + encoder.peakMemory)
      try encoder.close()
      finally spillFile.close()
    }
  }
}
