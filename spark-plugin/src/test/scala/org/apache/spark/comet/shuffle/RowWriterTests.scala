package org.apache.spark.comet.shuffle

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.internal.config
import org.apache.spark.memory.{TaskMemoryManager, UnifiedMemoryManager}
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.types.{BinaryType, LongType, StructType}

/** What tests of the parts of row writers share. */
object RowWriterTests {

  val schema: StructType = new StructType().add("id", LongType).add("payload", BinaryType)

  def serializer(sc: SparkContext): CometShuffleSerializer = {
    def metric = SQLMetrics.createMetric(sc, "test")
    new CometShuffleSerializer(
      schema,
      BlockSettings(
        codec = 1,
        zstdLevel = 1,
        rowsPerBlock = 4100,
        rowsPerBatch = 8192,
        maxBypassWriters = 100
      ),
      CometShuffleMetrics(metric, metric, metric, metric, metric, metric, metric)
    )
  }

  def taskMemory(offHeapBytes: Long): TaskMemoryManager = {
    val conf = new SparkConf(false)
      .set(config.MEMORY_OFFHEAP_ENABLED, true)
      .set(config.MEMORY_OFFHEAP_SIZE, offHeapBytes)
    new TaskMemoryManager(UnifiedMemoryManager(conf, numCores = 1), 0)
  }
}
