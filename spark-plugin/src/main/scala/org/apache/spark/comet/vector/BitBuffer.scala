package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.unsafe.Platform

/** Bits one behind the other, the first in the lowest bit of a byte. */
private[vector] final class BitBuffer {

  val bytes = new GrowingBuffer
  private var count = 0

  def append(bit: Boolean): Unit = {
    if ((count & 7) == 0) {
      bytes.appendByte(0)
    }
    if (bit) {
      val last = bytes.address + (count >> 3)
      Platform.putByte(null, last, (Platform.getByte(null, last) | 1 << (count & 7)).toByte)
    }
    count += 1
  }

  def clear(): Unit = {
    bytes.clear()
    count = 0
  }
}
