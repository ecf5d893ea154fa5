package org.apache.spark.comet.shuffle

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.comet.SchemaDescriptor
import org.apache.spark.comet.vector.RowPartitionIds
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.random.XORShiftRandom

/** How the native writer places rows. */
sealed trait NativePartitioning extends Serializable {

  def numPartitions: Int

  /** For the native side (`native/bridge/src/partitioning.rs`), in the task of a partition of the map side. */
  def encode(mapPartition: Int): Array[Byte]

  /** What gives the partition of each row, if the native side doesn't; made anew for each task. */
  def rowPartitionIds(): RowPartitionIds = null

  protected def encoded(kind: Int, parameterBytes: Int)(write: ByteBuffer => Unit): Array[Byte] = {
    val bytes = ByteBuffer.allocate(1 + 4 + parameterBytes).order(ByteOrder.LITTLE_ENDIAN)
    bytes.put(kind.toByte).putInt(numPartitions)
    write(bytes)
    bytes.array()
  }
}

case object NativeSinglePartitioning extends NativePartitioning {
  override def numPartitions: Int = 1
  override def encode(mapPartition: Int): Array[Byte] = encoded(0, 0)(_ => ())
}

/** Spark's `HashPartitioning` of columns. */
case class NativeHashPartitioning(keys: Array[Int], numPartitions: Int) extends NativePartitioning {
  override def encode(mapPartition: Int): Array[Byte] = encoded(1, 4 + 4 * keys.length) { bytes =>
    bytes.putInt(keys.length)
    keys.foreach(bytes.putInt)
  }
}

/** A key of a range partitioning. */
case class NativeSortKey(column: Int, descending: Boolean, nullsFirst: Boolean)

/** Spark's `RangePartitioning` of columns.
  *
  * @param keySchema the type of the bounds
  * @param bounds the upper bounds of all partitions but the last
  */
case class NativeRangePartitioning(
    keys: Array[NativeSortKey],
    keySchema: StructType,
    bounds: Array[UnsafeRow]
) extends NativePartitioning {

  override def numPartitions: Int = bounds.length + 1

  override def encode(mapPartition: Int): Array[Byte] = {
    val descriptor = SchemaDescriptor.encode(keySchema)
    val boundBytes = bounds.map(bound => 4 + bound.getSizeInBytes).sum
    val parameterBytes = 4 + 6 * keys.length + 4 + descriptor.length + 4 + boundBytes
    encoded(2, parameterBytes) { bytes =>
      bytes.putInt(keys.length)
      keys.foreach { key =>
        bytes.putInt(key.column)
        bytes.put(if (key.descending) 1.toByte else 0.toByte)
        bytes.put(if (key.nullsFirst) 1.toByte else 0.toByte)
      }
      bytes.putInt(descriptor.length).put(descriptor).putInt(boundBytes)
      bounds.foreach { bound =>
        bytes.putInt(bound.getSizeInBytes)
        bound.writeToMemory(bytes.array(), Platform.BYTE_ARRAY_OFFSET + bytes.position())
        bytes.position(bytes.position() + bound.getSizeInBytes)
      }
    }
  }
}

/** Row after row to the next partition, from a start that follows from the map partition as with Spark's
  * `RoundRobinPartitioning`.
  */
case class NativeRoundRobinPartitioning(numPartitions: Int) extends NativePartitioning {
  override def encode(mapPartition: Int): Array[Byte] = encoded(3, 4) { bytes =>
    bytes.putInt(new XORShiftRandom(mapPartition).nextInt(numPartitions))
  }
}

/** By Spark's own code, row by row. */
case class RowPartitioning(numPartitions: Int, newIds: () => RowPartitionIds)
    extends NativePartitioning {
  override def encode(mapPartition: Int): Array[Byte] = encoded(4, 0)(_ => ())
  override def rowPartitionIds(): RowPartitionIds = newIds()
}
