package org.apache.spark.comet.shuffle

import org.apache.spark.ShuffleDependency
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.checksum.RowBasedChecksum
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.storage.BlockManagerId

/** Spark 4.1: dependencies carry row checksums, map status takes their sum. */
object ShuffleShims extends SparkShuffleShims {

  private class Checksums(val ofPartitions: Array[RowBasedChecksum]) extends RowChecksums {
    override def update(partition: Int, key: Any, row: Any): Unit =
      if (ofPartitions.length > 0) {
        ofPartitions(partition).update(key, row)
      }
  }

  override def rowChecksums(dependency: ShuffleDependency[_, _, _]): RowChecksums =
    new Checksums(dependency.rowBasedChecksums)

  override def wantsRowChecksums(conf: SQLConf): Boolean =
    conf.shuffleOrderIndependentChecksumEnabled || conf.shuffleChecksumMismatchFullRetryEnabled

  override def mapStatus(
      location: BlockManagerId,
      lengths: Array[Long],
      mapId: Long,
      checksums: RowChecksums
  ): MapStatus = {
    val total = checksums match {
      case known: Checksums => RowBasedChecksum.getAggregatedChecksumValue(known.ofPartitions)
    }
    MapStatus(location, lengths, mapId, total)
  }
}
