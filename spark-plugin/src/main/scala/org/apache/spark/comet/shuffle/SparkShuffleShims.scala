package org.apache.spark.comet.shuffle

import org.apache.spark.ShuffleDependency
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.storage.BlockManagerId

/** Checksums of a map task's rows, one for each partition, that do not depend on the order of rows. */
trait RowChecksums {
  def update(partition: Int, key: Any, row: Any): Unit
}

/** What differs between releases of Spark; each has its `ShuffleShims`, in a source folder of its own. */
trait SparkShuffleShims {

  /** The row checksums that a dependency asks for. */
  def rowChecksums(dependency: ShuffleDependency[_, _, _]): RowChecksums

  /** Whether the session wants row checksums, for which there have to be rows. */
  def wantsRowChecksums(conf: SQLConf): Boolean

  def mapStatus(
      location: BlockManagerId,
      lengths: Array[Long],
      mapId: Long,
      checksums: RowChecksums
  ): MapStatus
}
