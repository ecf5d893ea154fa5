package org.apache.spark.comet.shuffle

import org.apache.spark.executor.TaskMetrics
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter

/** What a run of the native writer did: the numbers of `Native.runShuffleWriter`. */
private class NativeWriterStats {
  import NativeWriterStats._

  val numbers = new Array[Long](Length)

  def report(
      metrics: CometShuffleMetrics,
      native: NativeShuffleMetrics,
      writeMetrics: ShuffleWriteMetricsReporter,
      taskMetrics: TaskMetrics
  ): Unit = {
    metrics.dataSize.add(numbers(RowBytes))
    metrics.encodeTime.add(numbers(EncodeNanos))
    metrics.compressTime.add(numbers(CompressNanos))
    metrics.blocksWritten.add(numbers(Blocks))
    metrics.spillCount.add(numbers(Spills))
    metrics.spillSize.add(numbers(DiskSpilled))
    native.inputBatches.add(numbers(Batches))
    native.importTime.add(numbers(ImportNanos))
    native.partitionTime.add(numbers(PartitionNanos))
    native.gatherTime.add(numbers(GatherNanos))
    native.memorySpilled.add(numbers(MemorySpilled))
    native.memoryAcquisitions.add(numbers(Acquisitions))
    native.memoryReleases.add(numbers(Releases))
    native.memoryAcquired.add(numbers(AcquiredBytes))
    native.memoryTime.add(numbers(MemoryNanos))
    writeMetrics.incRecordsWritten(numbers(Rows))
    writeMetrics.incWriteTime(numbers(WriteNanos))
    taskMetrics.incMemoryBytesSpilled(numbers(MemorySpilled))
    taskMetrics.incDiskBytesSpilled(numbers(DiskSpilled))
    taskMetrics.incPeakExecutionMemory(numbers(PeakBytes))
  }
}

private object NativeWriterStats {
  val Rows = 0
  val RowBytes = 1
  val Batches = 2
  val Blocks = 3
  val Spills = 4
  val MemorySpilled = 5
  val DiskSpilled = 6
  val PeakBytes = 7
  val ImportNanos = 8
  val PartitionNanos = 9
  val GatherNanos = 10
  val EncodeNanos = 11
  val CompressNanos = 12
  val WriteNanos = 13
  val Acquisitions = 14
  val Releases = 15
  val AcquiredBytes = 16
  val MemoryNanos = 17
  val Length = 18
}
