package org.apache.spark.comet.shuffle

import org.apache.spark.unsafe.Platform

/** Native memory that holds the stored blocks of one batch. It grows with what was really read. */
private class BlockBuffer extends AutoCloseable {

  private val piece = new Array[Byte](BlockBuffer.PieceBytes)
  private var address = 0L
  private var allocated = 0L
  private var used = 0L

  /** Address of the first byte; changes as the buffer grows. */
  def start: Long = address

  /** Bytes in use. */
  def length: Long = used

  /** Bytes allocated. */
  def capacity: Long = allocated

  def clear(): Unit = used = 0

  /** Appends up to `count` bytes of `source`; returns how many there were. */
  def readFrom(source: FetchedBlock, count: Long): Long = {
    var read = 0L
    var open = true
    while (open && read < count) {
      val n = source.read(piece, math.min(piece.length.toLong, count - read).toInt)
      if (n < 0) {
        open = false
      } else {
        reserve(n)
        Platform.copyMemory(piece, Platform.BYTE_ARRAY_OFFSET, null, address + used, n)
        used += n
        read += n
      }
    }
    read
  }

  /** Moves the bytes from `from` on to the start. */
  def keepFrom(from: Long): Unit = {
    // copyMemory handles overlap.
    Platform.copyMemory(null, address + from, null, address, used - from)
    used -= from
  }

  private def reserve(bytes: Int): Unit = if (used + bytes > allocated) {
    val wanted = math.max(used + bytes, math.max(2 * allocated, BlockBuffer.PieceBytes))
    address = if (address == 0) Platform.allocateMemory(wanted)
    else Platform.reallocateMemory(address, allocated, wanted)
    allocated = wanted
  }

  override def close(): Unit = if (address != 0) {
    Platform.freeMemory(address)
    address = 0
    allocated = 0
    used = 0
  }
}

private object BlockBuffer {
  val PieceBytes: Int = 64 << 10
}
