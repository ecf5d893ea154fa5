package org.apache.spark.comet.shuffle

import org.apache.spark.SparkConf
import org.apache.spark.serializer.SerializerManager
import org.apache.spark.shuffle.api.ShuffleMapOutputWriter

/** The final file of a map task, whose partitions are written in ascending order; those without rows are left out. */
private class MapOutput(
    output: ShuffleMapOutputWriter,
    numPartitions: Int,
    serializerManager: SerializerManager,
    conf: SparkConf
) extends AutoCloseable {

  private val checksums = new PartitionChecksums(numPartitions, conf)
  private var partition = -1
  private var current: PartitionOutput = _

  /** Where the bytes of `partition` go, after those of all earlier partitions. */
  def sink(partition: Int): ByteSink = {
    if (partition != this.partition) {
      close()
      this.partition = partition
      current = PartitionOutput.open(
        output.getPartitionWriter(partition),
        serializerManager,
        checksums.begin()
      )
    }
    current
  }

  /** Ends the partition that is being written. Without effect once it is done. */
  override def close(): Unit = if (current != null) {
    val closing = current
    current = null
    closing.close()
    checksums.end(partition)
  }

  /** Makes the file visible; returns the partitions' lengths. */
  def commit(): Array[Long] = {
    close()
    output.commitAllPartitions(checksums.values).getPartitionLengths
  }
}
