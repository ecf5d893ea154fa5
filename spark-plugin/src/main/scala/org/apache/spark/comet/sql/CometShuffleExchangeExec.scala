package org.apache.spark.comet.sql

import scala.concurrent.Future

import org.apache.spark.{MapOutputStatistics, ShuffleDependency}
import org.apache.spark.comet.CometConf
import org.apache.spark.comet.shuffle.{
  BlockSettings,
  CometShuffleMetrics,
  CometShuffleSerializer,
  NativeSettings,
  NativeShuffleMetrics
}
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
  SQLMetric,
  SQLMetrics,
  SQLShuffleReadMetricsReporter,
  SQLShuffleWriteMetricsReporter
}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** An exchange that ships columnar blocks and hands on batches. It takes rows or, for the native writer, batches. With
  * rows the partition ids, the sampling of ranges and the order of round robin are Spark's own code; with batches they
  * are the same as Spark's, but for round robin, which may start elsewhere.
  */
case class CometShuffleExchangeExec(
    override val outputPartitioning: Partitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long],
    writer: ShuffleWriterKind
) extends ShuffleExchangeLike {

  override def nodeName: String = s"CometShuffleExchange($writer)"

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
  ) ++ nativeMetrics ++ readMetrics ++ writeMetrics

  private lazy val nativeMetrics: Map[String, SQLMetric] =
    if (writer == NativeWriter) {
      Map(
        "inputBatches" -> SQLMetrics.createMetric(sparkContext, "input batches"),
        "importTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time to copy input"),
        "partitionTime" ->
          SQLMetrics.createNanoTimingMetric(sparkContext, "time to compute partitions"),
        "gatherTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time to gather rows"),
        "memorySpilled" -> SQLMetrics.createSizeMetric(sparkContext, "memory spilled"),
        "memoryAcquisitions" ->
          SQLMetrics.createMetric(sparkContext, "memory pool acquisitions"),
        "memoryReleases" -> SQLMetrics.createMetric(sparkContext, "memory pool releases"),
        "memoryAcquired" -> SQLMetrics.createSizeMetric(sparkContext, "memory pool acquired"),
        "memoryTime" -> SQLMetrics.createNanoTimingMetric(sparkContext, "time in memory pool calls")
      )
    } else {
      Map.empty
    }

  // Of rows or of batches: columnar data passes as rows as far as types go.
  @transient private lazy val inputRDD: RDD[InternalRow] = writer match {
    case JvmWriter => child.execute()
    case NativeWriter => child.executeColumnar().asInstanceOf[RDD[InternalRow]]
  }

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
    val dependency = writer match {
      case JvmWriter =>
        ShuffleExchangeExec.prepareShuffleDependency(
          inputRDD,
          child.output,
          outputPartitioning,
          serializer(native = None),
          writeMetrics
        )
      case NativeWriter =>
        val batches = inputRDD.asInstanceOf[RDD[ColumnarBatch]]
        NativeShuffleDependency.create(
          batches,
          serializer(Some(nativeSettings(batches))),
          writeMetrics
        )
    }
    metrics("numPartitions").set(dependency.partitioner.numPartitions)
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      metrics("numPartitions") :: Nil
    )
    dependency
  }

  private def nativeSettings(batches: RDD[ColumnarBatch]) = NativeSettings(
    NativeShuffleDependency.partitioning(outputPartitioning, child.output, batches),
    CometConf.WRITE_BUFFER_SIZE.get(conf),
    CometConf.MAX_BUFFER_BYTES.get(conf),
    fairPool = CometConf.MEMORY_POOL.get(conf) == "fair_unified",
    NativeShuffleMetrics(
      inputBatches = longMetric("inputBatches"),
      importTime = longMetric("importTime"),
      partitionTime = longMetric("partitionTime"),
      gatherTime = longMetric("gatherTime"),
      memorySpilled = longMetric("memorySpilled"),
      memoryAcquisitions = longMetric("memoryAcquisitions"),
      memoryReleases = longMetric("memoryReleases"),
      memoryAcquired = longMetric("memoryAcquired"),
      memoryTime = longMetric("memoryTime")
    )
  )

  private def serializer(native: Option[NativeSettings]) = new CometShuffleSerializer(
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
    ),
    native
  )

  private def blockSettings: BlockSettings = {
    val codec = CometConf.COMPRESSION_CODEC.get(conf)
    BlockSettings(
      codec = if (sparkContext.conf.get(SHUFFLE_COMPRESS)) BlockSettings.codecId(codec) else 0,
      zstdLevel = CometConf.ZSTD_LEVEL.get(conf),
      rowsPerBlock = CometConf.JVM_BATCH_SIZE.get(conf),
      rowsPerBatch = CometConf.BATCH_SIZE.get(conf),
      maxBypassWriters = CometConf.MAX_WRITERS_PER_EXECUTOR.get(conf)
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
