package org.apache.spark.sql.execution

import org.apache.spark.SparkConf
import org.apache.spark.comet.suites.Contender
import org.apache.spark.internal.config.IO_ENCRYPTION_ENABLED
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

class CometCoalesceShufflePartitionsSuite extends CoalesceShufflePartitionsSuite {

  override def withSparkSession(
      f: SparkSession => Unit,
      targetPostShuffleInputSize: Int,
      minNumPostShufflePartitions: Option[Int],
      enableIOEncryption: Boolean
  ): Unit = {
    val least = minNumPostShufflePartitions.getOrElse(1)
    val conf = Contender.addTo(new SparkConf(false))
      .set(IO_ENCRYPTION_ENABLED, enableIOEncryption)
      .set(SQLConf.SHUFFLE_PARTITIONS, 5)
      .set(SQLConf.ADAPTIVE_EXECUTION_ENABLED, true)
      .set(SQLConf.FETCH_SHUFFLE_BLOCKS_IN_BATCH, true)
      .set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")
      .set(SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM.key, "5")
      .set(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM.key, least.toString)
      .set(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key, targetPostShuffleInputSize.toString)
    val builder = SparkSession.builder().master("local[*]").appName(suiteName).config(conf)
    val session = builder.getOrCreate()
    try f(session)
    finally session.stop()
  }
}
