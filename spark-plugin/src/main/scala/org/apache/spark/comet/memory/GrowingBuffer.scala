package org.apache.spark.comet.memory

import org.apache.spark.unsafe.Platform

/** What holds native memory that nobody else frees. */
trait NativeMemoryHolder {

  /** The bytes that are allocated. */
  def capacity: Long

  def free(): Unit
}

/** Native memory that grows as it is written, and may move then.
  *
  * @param minCapacity bytes that are allocated at least, once there are any
  */
final class GrowingBuffer(minCapacity: Long = 64) extends NativeMemoryHolder {

  private var start = 0L
  private var size = 0L
  private var used = 0L

  /** Where the first byte is, until more is written. */
  def address: Long = start

  def length: Long = used

  override def capacity: Long = size

  def clear(): Unit = used = 0

  /** Moves the bytes from `from` on to the start. */
  def keepFrom(from: Long): Unit = {
    // copyMemory handles overlap.
    Platform.copyMemory(null, start + from, null, start, used - from)
    used -= from
  }

  /** Makes room for `bytes` at the end and returns its address, which is valid until more is written. */
  def append(bytes: Long): Long = {
    val end = used + bytes
    if (end > size) {
      val grown = math.max(end, math.max(minCapacity, 2 * size))
      start = Platform.reallocateMemory(start, size, grown)
      size = grown
    }
    val room = start + used
    used = end
    room
  }

  def appendByte(value: Byte): Unit = Platform.putByte(null, append(1), value)

  def appendInt(value: Int): Unit = Platform.putInt(null, append(4), value)

  def appendLong(value: Long): Unit = Platform.putLong(null, append(8), value)

  override def free(): Unit = {
    Platform.freeMemory(start)
    start = 0
    size = 0
    used = 0
  }
}
