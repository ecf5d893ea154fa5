package org.apache.spark.comet.vector

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.comet.NativeLibrary
import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.unsafe.Platform

class BatchDescriptorSuite extends AnyFunSuite {

  /** Memory for `numbers` numbers and no more. */
  private class Limited(numbers: Int) extends GrowingBuffer(minCapacity = numbers * 8L) {
    override protected def reallocate(address: Long, bytes: Long, wanted: Long): Long =
      if (wanted > numbers * 8L) 0 else super.reallocate(address, bytes, wanted)
  }

  private def text(): GrowingBuffer = {
    val buffer = new GrowingBuffer
    for (byte <- 1 to 100) buffer.appendByte(byte.toByte)
    buffer
  }

  test("memory that is handed over belongs to the descriptor until it is taken") {
    NativeLibrary.load()
    val descriptor = new BatchDescriptor
    descriptor.clear()
    val buffer = text()
    val (address, capacity) = (buffer.address, buffer.capacity)
    descriptor.appendHandedOver(buffer)
    assert((buffer.address, buffer.length, buffer.capacity) === (0, 0, 0))
    assert(descriptor.capacity >= capacity)
    val numbers = descriptor.finish()
    val seen = (0 until 4).map(i => Platform.getLong(null, numbers + i * 8))
    assert(seen === Seq(4L, address, 100L, capacity))
    descriptor.free()
    assert(descriptor.capacity === 0)
  }

  for (room <- 1 to 3)
    test(s"memory stays where it was if there is no room to hand it over: $room numbers") {
      NativeLibrary.load()
      val descriptor = new BatchDescriptor(new Limited(room))
      descriptor.clear()
      val buffer = text()
      val (address, capacity) = (buffer.address, buffer.capacity)
      intercept[OutOfMemoryError](descriptor.appendHandedOver(buffer))
      // Neither frees what is the other's.
      descriptor.clear()
      descriptor.free()
      assert((buffer.address, buffer.length, buffer.capacity) === (address, 100, capacity))
      assert(Platform.getByte(null, address + 99) === 100)
      buffer.free()
    }
}
