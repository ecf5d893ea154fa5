package org.apache.spark.comet.shuffle

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.unsafe.Platform

/** Native memory that holds the stored blocks of one batch. It grows with what was really read. */
private class BlockBuffer extends AutoCloseable {

  private val piece = new Array[Byte](BlockBuffer.PieceBytes)
  private val bytes = new GrowingBuffer(BlockBuffer.PieceBytes)

  /** Address of the first byte; changes as the buffer grows. */
  def start: Long = bytes.address

  /** Bytes in use. */
  def length: Long = bytes.length

  /** Bytes allocated. */
  def capacity: Long = bytes.capacity

  def clear(): Unit = bytes.clear()

  /** Appends up to `count` bytes of `source`; returns how many there were. */
  def readFrom(source: FetchedBlock, count: Long): Long = {
    var read = 0L
    var open = true
    while (open && read < count) {
      val n = source.read(piece, math.min(piece.length.toLong, count - read).toInt)
      if (n < 0) {
        open = false
      } else {
        Platform.copyMemory(piece, Platform.BYTE_ARRAY_OFFSET, null, bytes.append(n), n)
        read += n
      }
    }
    read
  }

  /** Moves the bytes from `from` on to the start. */
  def keepFrom(from: Long): Unit = bytes.keepFrom(from)

  override def close(): Unit = bytes.free()
}

private object BlockBuffer {
  val PieceBytes: Int = 64 << 10
}
