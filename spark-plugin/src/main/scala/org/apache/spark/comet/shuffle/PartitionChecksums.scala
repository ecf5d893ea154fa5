package org.apache.spark.comet.shuffle

import java.util.zip.Checksum

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.{SHUFFLE_CHECKSUM_ALGORITHM, SHUFFLE_CHECKSUM_ENABLED}
import org.apache.spark.network.shuffle.checksum.ShuffleChecksumHelper

/** The checksums of partitions that are written one after the other: one calculator for all of them. */
private class PartitionChecksums(numPartitions: Int, conf: SparkConf) {

  private val checksum: Checksum =
    if (conf.get(SHUFFLE_CHECKSUM_ENABLED)) {
      ShuffleChecksumHelper.getChecksumByAlgorithm(conf.get(SHUFFLE_CHECKSUM_ALGORITHM))
    } else {
      null
    }

  /** What Spark's commit takes: a value for each partition, or nothing if checksums are off. */
  val values: Array[Long] =
    if (checksum == null) Array.emptyLongArray
    else Array.fill(numPartitions)(checksum.getValue)

  /** The calculator for a partition's bytes, or null if checksums are off. */
  def begin(): Checksum = {
    if (checksum != null) {
      checksum.reset()
    }
    checksum
  }

  /** Takes the value for the partition whose bytes were counted since [[begin]]. */
  def end(partition: Int): Unit = if (checksum != null) {
    values(partition) = checksum.getValue
  }
}
