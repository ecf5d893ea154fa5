package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import org.apache.spark.comet.{Native, NativeLibrary}
import org.apache.spark.comet.memory.NativeMemoryReservation
import org.apache.spark.memory.TaskMemoryManager

/** Encodes row pages of one task as blocks, in native code. One encoder serves all partitions, so that its buffers and
  * codec context are made once.
  */
class RowEncoder(serializer: CometShuffleSerializer, memoryManager: TaskMemoryManager)
    extends AutoCloseable {

  NativeLibrary.load()

  private val reservation = new NativeMemoryReservation(memoryManager)
  private val stats = new Array[Long](RowEncoder.StatsLength)
  private val settings = serializer.settings
  private var handle =
    Native.newRowEncoder(serializer.descriptor, settings.codec, settings.zstdLevel)

  /** Blocks with the rows of the first `count` pages, in memory that is valid until the next call.
    *
    * @param pages addresses of pages
    * @param used bytes used in each
    * @param last whether these are the last rows of their partition in this task; without rows this gives the block that
    *             only marks the end
    */
  def encode(pages: Array[Long], used: Array[Long], count: Int, last: Boolean): ByteBuffer = {
    val blocks = Native.encodeRows(handle, pages, used, count, last, stats)
    val metrics = serializer.metrics
    metrics.encodeTime.add(stats(RowEncoder.EncodeNanos))
    metrics.compressTime.add(stats(RowEncoder.CompressNanos))
    metrics.blocksWritten.add(stats(RowEncoder.Blocks))
    // Charged as it grows: what a block needs is known once it is made. A denial is no reason to fail the task.
    reservation.resize(stats(RowEncoder.MemoryBytes))
    blocks
  }

  /** The block that marks the end of a partition whose rows are all in earlier blocks. */
  def encodeEnd(): ByteBuffer = encode(Array.emptyLongArray, Array.emptyLongArray, 0, last = true)

  def peakMemory: Long = reservation.peakMemory

  override def close(): Unit = if (handle != 0) {
    val closing = handle
    handle = 0
    Native.closeRowEncoder(closing)
    reservation.release()
  }
}

private object RowEncoder {
  // What Native.encodeRows fills in.
  val EncodeNanos = 0
  val CompressNanos = 1
  val MemoryBytes = 2
  val Blocks = 3
  val StatsLength = 4
}
