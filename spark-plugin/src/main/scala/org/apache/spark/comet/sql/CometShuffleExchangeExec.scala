package org.apache.spark.comet.sql

import scala.concurrent.Future

import org.apache.spark.{MapOutputStatistics, ShuffleDependency}
import org.apache.spark.comet.CometConf
import org.apache.spark.comet.shuffle.{BlockSettings, CometShuffleMetrics, CometShuffleSerializer}
import org.apache.spark.internal.config.SHUFFLE_COMPRESS
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  SQLExecution,
  ShufflePartitionSpec,
  SparkPlan
}
import org.apache.spark.sql.execution.exchange.{
  ShuffleExchangeExec,
  ShuffleExchangeLike,
  ShuffleOrigin
}
import org.apache.spark.sql.execution.metric.{
  SQLMetrics,
  SQLShuffleReadMetricsReporter,
  SQLShuffleWriteMetricsReporter
}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** An exchange that takes rows, ships columnar blocks and hands on batches. Partition ids, sampling of ranges and the
  * order of round robin are those of Spark, by Spark's own code.
  */
case class CometShuffleExchangeExec(
    override val outputPartitioning: Partitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long]
) extends ShuffleExchangeLike {

  override def nodeName: String = "CometShuffleExchange"

  override def supportsColumnar: Boolean = true

  private lazy val writeMetrics =
    SQLShuffleWriteMetricsReporter.createShuffleWriteMetrics(sparkContext)

  private lazy val readMetrics =
    SQLShuffleReadMetricsReporter.createShuffleReadMetrics(sparkContext)

  override lazy val metrics = Map(
    "dataSize" -> SQLMetrics.createSizeMetric(sparkContext, "data size"),
    "numPartitions" -> SQLMetrics.createMetric(sparkContext, "number of partitions"),
    "encodeTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time to encode blocks"),
    "compressTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time to compress blocks"),
    "decodeTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time to decode blocks"),
    "blocksWritten" -> SQLMetrics.createMetric(sparkContext, "blocks written"),
    "spillCount" -> SQLMetrics.createMetric(sparkContext, "number of spills"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size")
  ) ++ readMetrics ++ writeMetrics

  @transient private lazy val inputRDD: RDD[InternalRow] = child.execute()

  @transient
  override protected lazy val mapOutputStatisticsFuture: Future[MapOutputStatistics] =
    if (inputRDD.getNumPartitions == 0) {
      Future.successful(null)
    } else {
      sparkContext.submitMapStage(shuffleDependency)
    }

  override def numMappers: Int = shuffleDependency.rdd.getNumPartitions

  override def numPartitions: Int = shuffleDependency.partitioner.numPartitions

  override def shuffleId: Int = shuffleDependency.shuffleId

  override def runtimeStatistics: Statistics = {
    val rowSize = metrics("dataSize").value
    val size = (rowSize * CometConf.SIZE_IN_BYTES_MULTIPLIER.get(conf)).toLong
    val rows = metrics(SQLShuffleWriteMetricsReporter.SHUFFLE_RECORDS_WRITTEN).value
    Statistics(size, Some(rows))
  }

  @transient
  private lazy val shuffleDependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    val dependency = ShuffleExchangeExec.prepareShuffleDependency(
      inputRDD,
      child.output,
      outputPartitioning,
      serializer,
      writeMetrics
    )
    metrics("numPartitions").set(dependency.partitioner.numPartitions)
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      metrics("numPartitions") :: Nil
    )
    dependency
  }

  private def serializer = new CometShuffleSerializer(
    child.schema,
    blockSettings,
    CometShuffleMetrics(
      dataSize = longMetric("dataSize"),
      encodeTime = longMetric("encodeTime"),
      compressTime = longMetric("compressTime"),
      decodeTime = longMetric("decodeTime"),
      spillCount = longMetric("spillCount"),
      spillSize = longMetric("spillSize"),
      blocksWritten = longMetric("blocksWritten")
    )
  )

  private def blockSettings: BlockSettings = {
    val codec = CometConf.COMPRESSION_CODEC.get(conf)
    BlockSettings(
      codec = if (sparkContext.conf.get(SHUFFLE_COMPRESS)) BlockSettings.codecId(codec) else 0,
      zstdLevel = CometConf.ZSTD_LEVEL.get(conf),
      rowsPerBlock = CometConf.JVM_BATCH_SIZE.get(conf),
      rowsPerBatch = CometConf.BATCH_SIZE.get(conf)
    )
  }

  override def getShuffleRDD(partitionSpecs: Array[ShufflePartitionSpec]): RDD[ColumnarBatch] =
    new CometShuffledBatchRDD(shuffleDependency, readMetrics, partitionSpecs)
      .asInstanceOf[RDD[ColumnarBatch]]

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = getShuffleRDD(
    Array.tabulate[ShufflePartitionSpec](numPartitions)(i => CoalescedPartitionSpec(i, i + 1))
  )

  override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException(
    s"$nodeName hands on batches, not rows"
  )

  override protected def withNewChildInternal(newChild: SparkPlan): CometShuffleExchangeExec =
    copy(child = newChild)
}
