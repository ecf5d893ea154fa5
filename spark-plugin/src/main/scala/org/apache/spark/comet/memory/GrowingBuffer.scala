package org.apache.spark.comet.memory

import org.apache.spark.comet.Native
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
class GrowingBuffer(minCapacity: Long = 64) extends NativeMemoryHolder {

  private var start = 0L
  private var size = 0L
  private var used = 0L
  // What was enough for what was handed over last.
  private var enough = minCapacity

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
      grow(math.max(end, math.max(enough, 2 * size)))
    }
    val room = start + used
    used = end
    room
  }

  private def grow(wanted: Long): Unit = {
    val grown = reallocate(start, size, wanted)
    if (grown == 0) {
      throw new OutOfMemoryError(s"No $wanted bytes of native memory")
    }
    start = grown
    size = wanted
  }

  /** The address of memory of `wanted` bytes with those that there were, or 0 if there is none. */
  protected def reallocate(address: Long, bytes: Long, wanted: Long): Long =
    Native.reallocate(address, bytes, wanted)

  def appendByte(value: Byte): Unit = Platform.putByte(null, append(1), value)

  def appendInt(value: Int): Unit = Platform.putInt(null, append(4), value)

  def appendLong(value: Long): Unit = Platform.putLong(null, append(8), value)

  /** Forgets the memory, which belongs to whom it was handed over to. */
  def handOver(): Unit = {
    enough = math.max(minCapacity, used)
    forget()
  }

  override def free(): Unit = {
    Native.free(start, size)
    forget()
  }

  private def forget(): Unit = {
    start = 0
    size = 0
    used = 0
  }
}
