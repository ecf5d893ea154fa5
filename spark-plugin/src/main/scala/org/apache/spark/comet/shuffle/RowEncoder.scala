package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import org.apache.spark.comet.{Native, NativeLibrary}
import org.apache.spark.comet.memory.NativeMemoryReservation
import org.apache.spark.memory.TaskMemoryManager

/** Addresses and used bytes of the first `count` pages. */
case class RowPages(addresses: Array[Long], usedBytes: Array[Long], count: Int)

/** Blocks of some partitions, one behind the other, until the encoder is used again.
  *
  * @param numPartitions entries of `partitions` and `lengths` that count
  * @param rows rows in the blocks
  */
class PartitionedBlocks(
    val blocks: ByteBuffer,
    val partitions: Array[Int],
    val lengths: Array[Long],
    val numPartitions: Int,
    val rows: Int
) {

  /** Hands on the blocks of each partition. */
  def foreach(body: (Int, ByteBuffer) => Unit): Unit = {
    var i = 0
    var start = 0
    while (i < numPartitions) {
      val end = start + lengths(i).toInt
      val own = blocks.duplicate()
      own.position(start).limit(end)
      body(partitions(i), own)
      start = end
      i += 1
    }
  }
}

/** Encodes row pages of one task as blocks, in native code. One encoder serves all partitions, so that its buffers and
  * codec context are made once.
  */
class RowEncoder(serializer: CometShuffleSerializer, memoryManager: TaskMemoryManager)
    extends AutoCloseable {

  NativeLibrary.load()

  private val reservation = new NativeMemoryReservation(memoryManager)
  private val stats = new Array[Long](RowEncoder.StatsLength)
  private val settings = serializer.settings
  private lazy val partitions = new Array[Int](RowEncoder.MaxPartitions)
  private lazy val lengths = new Array[Long](RowEncoder.MaxPartitions)
  private var handle =
    Native.newRowEncoder(serializer.descriptor, settings.codec, settings.zstdLevel)

  /** Blocks with the rows of `pages`, in memory that is valid until the next call.
    *
    * @param last whether these are the last rows of their partition in this task; without rows this gives the block that
    *             only marks the end
    */
  def encode(pages: RowPages, last: Boolean): ByteBuffer = {
    val blocks =
      Native.encodeRows(handle, pages.addresses, pages.usedBytes, pages.count, last, stats)
    addMetrics()
    blocks
  }

  /** Blocks with the rows of the first of `count` sorted pointers, as [[Native.encodeSortedRows]] makes them.
    *
    * @param pointers address of the first pointer
    * @param pages the pages that the rows lie in
    * @param last whether these are the last rows of their partitions in this task
    */
  def encodeSorted(
      pointers: Long,
      count: Int,
      pages: RowPages,
      last: Boolean
  ): PartitionedBlocks = {
    val blocks = Native.encodeSortedRows(
      handle,
      pointers,
      count,
      pages.addresses,
      pages.usedBytes,
      pages.count,
      settings.rowsPerBlock,
      last,
      partitions,
      lengths,
      stats
    )
    addMetrics()
    new PartitionedBlocks(
      blocks,
      partitions,
      lengths,
      stats(RowEncoder.Partitions).toInt,
      stats(RowEncoder.Rows).toInt
    )
  }

  private def addMetrics(): Unit = {
    val metrics = serializer.metrics
    metrics.encodeTime.add(stats(RowEncoder.EncodeNanos))
    metrics.compressTime.add(stats(RowEncoder.CompressNanos))
    metrics.blocksWritten.add(stats(RowEncoder.Blocks))
    // Charged as it grows: what a block needs is known once it is made. A denial is no reason to fail the task.
    reservation.resize(stats(RowEncoder.MemoryBytes))
  }

  /** The block that marks the end of a partition whose rows are all in earlier blocks. */
  def encodeEnd(): ByteBuffer =
    encode(RowPages(Array.emptyLongArray, Array.emptyLongArray, 0), last = true)

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
  val Rows = 4
  val Partitions = 5
  val StatsLength = 6
  val MaxPartitions = 8192
}
