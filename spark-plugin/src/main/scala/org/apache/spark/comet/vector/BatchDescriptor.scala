package org.apache.spark.comet.vector

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.comet.Native
import org.apache.spark.comet.memory.{GrowingBuffer, NativeMemoryHolder}
import org.apache.spark.unsafe.Platform

/** The numbers that describe a batch to the native side (see `native/vector`), and what only they refer to. */
private[vector] final class BatchDescriptor(numbers: GrowingBuffer = new GrowingBuffer)
    extends NativeMemoryHolder {

  private val arrays = ArrayBuffer.empty[AnyRef]
  private val exported = ArrayBuffer.empty[Long]
  // Where in the numbers there is an address of memory that is handed over.
  private val handedOver = ArrayBuffer.empty[Long]
  private var handedOverBytes = 0L
  // The bytes that may still be handed over.
  private var room = 0L

  /** Starts anew and gives up what the numbers referred to.
    *
    * @param budget the bytes that may be handed over
    */
  def clear(budget: Long = Long.MaxValue): Unit = {
    arrays.clear()
    exported.foreach(Native.releaseArray)
    exported.clear()
    handedOver.foreach { position =>
      // It is 0 if the native side has taken it over.
      val address = Platform.getLong(null, numbers.address + position)
      if (address != 0) {
        Native.free(address, Platform.getLong(null, numbers.address + position + 16))
      }
    }
    handedOver.clear()
    handedOverBytes = 0
    room = budget
    numbers.clear()
    append(0) // How many numbers there are, known at the end.
  }

  def append(number: Long): Unit = numbers.appendLong(number)

  /** Appends the place of a byte of an array. */
  def appendArray(array: AnyRef, byte: Long): Unit = {
    append(Long.MinValue | (arrays.length.toLong << BatchDescriptor.OffsetBits) | byte)
    arrays += array
  }

  /** Appends rows, from row `from` on, of an array of Arrow's C data interface, which is released at the next `clear`.
    */
  def appendExported(array: Long, from: Int): Unit = {
    exported += array
    append(ColumnKind.Arrow)
    append(array)
    append(from)
  }

  /** Appends memory that the native side may read until the next `clear`. */
  def appendLent(buffer: GrowingBuffer): Unit = {
    append(buffer.address)
    append(buffer.length)
    append(buffer.capacity)
  }

  /** Appends memory that the native side takes over. */
  def appendHandedOver(buffer: GrowingBuffer): Unit = {
    val position = numbers.length
    // If there is no room for the numbers, nothing is handed over.
    appendNone()
    handedOver += position
    handedOverBytes += buffer.capacity
    room -= buffer.length
    val place = numbers.address + position
    Platform.putLong(null, place + 8, buffer.length)
    Platform.putLong(null, place + 16, buffer.capacity)
    Platform.putLong(null, place, buffer.address)
    buffer.handOver()
  }

  /** Throws if `bytes` more cannot be handed over. */
  def requireRoom(bytes: Long): Unit = if (bytes > room) throw new BatchTooLargeException

  /** Appends no memory. */
  def appendNone(): Unit = {
    append(0)
    append(0)
    append(0)
  }

  /** The address of the whole descriptor. */
  def finish(): Long = {
    Platform.putLong(null, numbers.address, numbers.length / 8)
    numbers.address
  }

  /** Copies bytes of the array of that number to native memory. */
  def copyArray(array: Int, from: Long, address: Long, bytes: Long): Unit = {
    val source = arrays(array)
    val (start, length) = BatchDescriptor.extent(source)
    if (from < 0 || bytes < 0 || from > length - bytes) {
      throw new IndexOutOfBoundsException(s"Bytes $from + $bytes of an array of $length")
    }
    Platform.copyMemory(source, start + from, null, address, bytes)
  }

  override def capacity: Long = numbers.capacity + handedOverBytes

  override def free(): Unit = {
    clear()
    numbers.free()
  }
}

private object BatchDescriptor {

  /** The bits of a place in an array that say the byte; those above it say the array. */
  private val OffsetBits = 40

  /** Where an array's first byte is, and how many bytes it has. */
  private def extent(array: AnyRef): (Int, Long) = array match {
    case bytes: Array[Byte] => (Platform.BYTE_ARRAY_OFFSET, bytes.length)
    case shorts: Array[Short] => (Platform.SHORT_ARRAY_OFFSET, shorts.length * 2L)
    case ints: Array[Int] => (Platform.INT_ARRAY_OFFSET, ints.length * 4L)
    case longs: Array[Long] => (Platform.LONG_ARRAY_OFFSET, longs.length * 8L)
    case floats: Array[Float] => (Platform.FLOAT_ARRAY_OFFSET, floats.length * 4L)
    case doubles: Array[Double] => (Platform.DOUBLE_ARRAY_OFFSET, doubles.length * 8L)
    case other => throw new IllegalArgumentException(s"No array of numbers: ${other.getClass}")
  }
}
