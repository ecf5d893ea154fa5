package org.apache.spark.comet.shuffle

import org.apache.spark.comet.SchemaDescriptor
import org.apache.spark.serializer.{Serializer, SerializerInstance}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.StructType

/** How the blocks of an exchange are made and read.
  *
  * @param codec as in the block's header (`docs/block-format.md`)
  * @param maxBypassWriters how many partitions the executor's tasks may have together for the bypass writer
  */
case class BlockSettings(
    codec: Int,
    zstdLevel: Int,
    rowsPerBlock: Int,
    rowsPerBatch: Int,
    maxBypassWriters: Int
)

object BlockSettings {

  /** The header's number for a value of `spark.comet.shuffle.compression.codec`. */
  def codecId(name: String): Int = name match {
    case "none" => 0
    case "lz4" => 1
    case "zstd" => 2
    case "snappy" => 3
  }
}

/** Metrics of an exchange beyond Spark's. */
case class CometShuffleMetrics(
    dataSize: SQLMetric,
    encodeTime: SQLMetric,
    compressTime: SQLMetric,
    decodeTime: SQLMetric,
    spillCount: SQLMetric,
    spillSize: SQLMetric,
    blocksWritten: SQLMetric
)

/** How the native writer of an exchange works, beside what every writer needs. */
case class NativeSettings(
    partitioning: NativePartitioning,
    writeBufferSize: Long,
    maxBufferBytes: Long,
    fairPool: Boolean,
    metrics: NativeShuffleMetrics
)

/** Metrics of the native writer. */
case class NativeShuffleMetrics(
    inputBatches: SQLMetric,
    importTime: SQLMetric,
    partitionTime: SQLMetric,
    gatherTime: SQLMetric,
    memorySpilled: SQLMetric,
    memoryAcquisitions: SQLMetric,
    memoryReleases: SQLMetric,
    memoryAcquired: SQLMetric,
    memoryTime: SQLMetric
)

/** Marks a shuffle dependency as one of ours and takes along what both sides need. The manager knows it by this
  * class, so that Spark's own code can prepare the dependency; rows never pass through a serializer instance.
  *
  * @param native settings of the native writer, if the dependency's records are batches for it
  */
class CometShuffleSerializer(
    val schema: StructType,
    val settings: BlockSettings,
    val metrics: CometShuffleMetrics,
    val native: Option[NativeSettings] = None
) extends Serializer with Serializable {

  /** `schema` as the native side reads it. */
  val descriptor: Array[Byte] = SchemaDescriptor.encode(schema)

  override def newInstance(): SerializerInstance = throw new UnsupportedOperationException(
    "Blocks of Comet Shuffle are written and read by CometShuffleManager only"
  )

  // Partitions are runs of self-delimited blocks, so adjacent ones can be fetched as one.
  override private[spark] def supportsRelocationOfSerializedObjects: Boolean = true
}
