package org.apache.spark.comet.shuffle

import java.io.{
  BufferedInputStream,
  BufferedOutputStream,
  DataInputStream,
  DataOutputStream,
  InputStream
}
import java.nio.ByteBuffer
import java.util.PriorityQueue

import scala.collection.mutable.ArrayBuffer

/** Rows that were spilled in the order of their partitions, as blocks. Each spill is an extent of the task's file: for
  * each partition with rows its number, the bytes of its blocks, and the blocks. So nothing is kept in memory for a
  * partition, and a merge reads every spill once, from its start to its end.
  */
private class SortedSpills(spillFile: SpillFile) {
  import SortedSpills._

  private val extents = ArrayBuffer.empty[(Long, Long)]

  def isEmpty: Boolean = extents.isEmpty

  /** Adds a spill of the blocks that `foreach` hands on, in the order of their partitions; returns the bytes on disk. */
  def add(foreach: ((Int, ByteBuffer) => Unit) => Unit): Long = {
    val written = spillFile.appendStream { stream =>
      val out = new DataOutputStream(new BufferedOutputStream(stream, BufferBytes))
      foreach { (partition, blocks) =>
        out.writeInt(partition)
        out.writeLong(blocks.remaining())
        ByteBuffers.copy(blocks, out)
      }
      out.flush()
    }
    extents += ((spillFile.length - written, written))
    written
  }

  /** Starts to read all spills by turns, partition by partition. */
  def merge(): SpillMerge =
    new SpillMerge(
      spillFile,
      extents.toSeq.zipWithIndex.map { case ((offset, length), index) =>
        new SpillCursor(spillFile.openStream(offset, length), index)
      }
    )
}

/** Spills that are read by turns. */
private class SpillMerge(spillFile: SpillFile, cursors: Seq[SpillCursor]) extends AutoCloseable {

  private val queue = new PriorityQueue[SpillCursor]()
  cursors.foreach(advance)

  /** The first partition that is left, or Int.MaxValue. */
  def nextPartition: Int = if (queue.isEmpty) Int.MaxValue else queue.peek().partition

  /** Copies all blocks of the first partition that is left. */
  def copyNext(sink: ByteSink): Unit = {
    val partition = nextPartition
    while (nextPartition == partition) {
      val cursor = queue.poll()
      spillFile.withPath(cursor.copyTo(sink))
      advance(cursor)
    }
  }

  override def close(): Unit = cursors.foreach(_.close())

  private def advance(cursor: SpillCursor): Unit =
    if (spillFile.withPath(cursor.next())) {
      queue.add(cursor)
    }
}

/** A place in one spill. The order of cursors is that of their partitions, then that of the spills. */
private class SpillCursor(stream: InputStream, private val spill: Int)
    extends Comparable[SpillCursor] with AutoCloseable {

  private val in =
    new DataInputStream(new BufferedInputStream(stream, SortedSpills.BufferBytes))
  private val piece = new Array[Byte](SortedSpills.BufferBytes)
  private var left = 0L

  /** The partition whose blocks are next. */
  var partition: Int = -1

  /** Goes to the next partition; false at the end. */
  def next(): Boolean = {
    val first = in.read()
    if (first >= 0) {
      partition = (first << 24) | (in.readUnsignedByte() << 16) | in.readUnsignedShort()
      left = in.readLong()
    }
    first >= 0
  }

  /** Copies the blocks of the partition. */
  def copyTo(sink: ByteSink): Unit =
    while (left > 0) {
      val count = math.min(left, piece.length.toLong).toInt
      in.readFully(piece, 0, count)
      sink.write(ByteBuffer.wrap(piece, 0, count))
      left -= count
    }

  override def compareTo(other: SpillCursor): Int =
    if (partition != other.partition) Integer.compare(partition, other.partition)
    else Integer.compare(spill, other.spill)

  override def close(): Unit = in.close()
}

private object SortedSpills {

  /** What a spill is read and written through: many of them are read at a time. */
  val BufferBytes: Int = 32 << 10
}
