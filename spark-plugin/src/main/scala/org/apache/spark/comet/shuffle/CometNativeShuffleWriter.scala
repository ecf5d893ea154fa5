package org.apache.spark.comet.shuffle

import java.io.File

import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}
import org.apache.spark.comet.{
  CometNativeException,
  CometOutOfMemoryException,
  Native,
  NativeLibrary
}
import org.apache.spark.comet.memory.{NativeShuffleMemory, Spillable}
import org.apache.spark.errors.SparkCoreErrors
import org.apache.spark.internal.{config, Logging}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{
  BaseShuffleHandle,
  IndexShuffleBlockResolver,
  ShuffleWriteMetricsReporter,
  ShuffleWriter
}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Writes batches in native code, which partitions them, stages them in the task's off-heap memory, spills and makes the
  * data file. What is committed is that file, with an index and checksums by Spark's own resolver.
  */
class CometNativeShuffleWriter[K, V](
    handle: BaseShuffleHandle[K, V, V],
    mapId: Long,
    context: TaskContext,
    writeMetrics: ShuffleWriteMetricsReporter,
    resolver: IndexShuffleBlockResolver
) extends ShuffleWriter[K, V] with Spillable with Logging {

  NativeLibrary.load()

  private val dependency: ShuffleDependency[K, V, V] = handle.dependency
  private val serializer = dependency.serializer.asInstanceOf[CometShuffleSerializer]
  private val native = serializer.native.get
  private val numPartitions = native.partitioning.numPartitions
  private val env = SparkEnv.get
  private val memory = new NativeShuffleMemory(context.taskMemoryManager(), env.conf)
  private val checksum = NativeChecksum.of(env.conf)

  private var writer = 0L
  private var partitionLengths: Array[Long] = _
  private var mapStatus: Option[MapStatus] = None

  override def write(records: Iterator[Product2[K, V]]): Unit = {
    val dataFile = resolver.createTempFile(resolver.getDataFile(dependency.shuffleId, mapId))
    val batches = records.map(_._2.asInstanceOf[ColumnarBatch])
    val task = new NativeWriterTask(batches, serializer, memory, context)
    try {
      open(dataFile, task)
      val checksums = run()
      commit(dataFile, checksums)
    } catch {
      case e: CometOutOfMemoryException =>
        context.killTaskIfInterrupted()
        context.taskMemoryManager().showMemoryUsage()
        val error = SparkCoreErrors.outOfMemoryError(e.requested, e.available)
        error.addSuppressed(e)
        throw error
      case e: CometNativeException =>
        // The native side stops when the task is killed, and fails then.
        context.killTaskIfInterrupted()
        throw e
    } finally {
      try close()
      finally task.close()
      deleteIfLeft(dataFile)
    }
  }

  private def open(dataFile: File, task: NativeWriterTask): Unit = {
    writer = Native.newShuffleWriter(
      serializer.descriptor,
      native.partitioning.encode(context.partitionId()),
      dataFile.getPath,
      serializer.settings.codec,
      serializer.settings.zstdLevel,
      serializer.settings.rowsPerBatch,
      math.min(CometNativeShuffleWriter.MaxBlockBytes, memory.bufferShare),
      math.min(native.writeBufferSize, memory.bufferShare),
      native.maxBufferBytes,
      checksum.id,
      native.fairPool,
      task
    )
    memory.open(this)
  }

  /** Writes the data file; returns the partitions' checksums. */
  private def run(): Array[Long] = {
    partitionLengths = new Array[Long](numPartitions)
    val checksums = new Array[Long](if (checksum == NativeChecksum.None) 0 else numPartitions)
    val stats = new NativeWriterStats
    Native.runShuffleWriter(writer, partitionLengths, checksums, stats.numbers)
    stats.report(serializer.metrics, native.metrics, writeMetrics, context.taskMetrics())
    logDebug(s"Native memory of task ${context.taskAttemptId()}\n" +
      Native.shuffleMemoryTable(writer))
    checksums
  }

  private def commit(dataFile: File, checksums: Array[Long]): Unit = {
    val start = System.nanoTime()
    // Like Spark's writers, no data file without data.
    val data = if (partitionLengths.exists(_ > 0)) dataFile else null
    resolver.writeMetadataFileAndCommit(
      dependency.shuffleId,
      mapId,
      partitionLengths,
      checksums,
      data
    )
    writeMetrics.incWriteTime(System.nanoTime() - start)
    writeMetrics.incBytesWritten(partitionLengths.sum)
    mapStatus = Some(ShuffleShims.mapStatus(
      env.blockManager.shuffleServerId,
      partitionLengths,
      mapId,
      ShuffleShims.rowChecksums(dependency)
    ))
  }

  override def spill(bytes: Long): Long = Native.spillShuffleWriter(writer, bytes)

  override def getPartitionLengths(): Array[Long] = partitionLengths

  override def stop(success: Boolean): Option[MapStatus] = if (success) mapStatus else None

  private def close(): Unit = if (writer != 0) {
    memory.close()
    val closing = writer
    writer = 0
    Native.closeShuffleWriter(closing)
  }

  private def deleteIfLeft(file: File): Unit =
    if (file.exists() && !file.delete()) {
      logError(s"Cannot delete the temporary file ${file.getPath}")
    }
}

private object CometNativeShuffleWriter {
  val MaxBlockBytes: Long = 4L << 20
}

/** The checksums that the native writer can make; the numbers are those of `Native.newShuffleWriter`. */
private sealed abstract class NativeChecksum(val id: Int)

private object NativeChecksum {
  case object None extends NativeChecksum(0)
  case object Adler32 extends NativeChecksum(1)
  case object Crc32 extends NativeChecksum(2)
  case object Crc32c extends NativeChecksum(3)

  def of(conf: org.apache.spark.SparkConf): NativeChecksum =
    if (!conf.get(config.SHUFFLE_CHECKSUM_ENABLED)) {
      None
    } else {
      conf.get(config.SHUFFLE_CHECKSUM_ALGORITHM) match {
        case "ADLER32" => Adler32
        case "CRC32" => Crc32
        case "CRC32C" => Crc32c
        case other => throw new IllegalArgumentException(
            s"${config.SHUFFLE_CHECKSUM_ALGORITHM.key} is '$other' but must be ADLER32, CRC32 or CRC32C."
          )
      }
    }
}
