package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.execution.vectorized.Dictionary
import org.apache.spark.unsafe.Platform

/** Where each row's bytes or elements end; 0 comes first. */
private final class Offsets {

  val buffer = new GrowingBuffer

  def append(end: Long): Unit = {
    if (end > Int.MaxValue) {
      throw new BatchTooLargeException
    }
    finish()
    buffer.appendInt(end.toInt)
  }

  def finish(): Unit =
    if (buffer.length == 0) {
      buffer.appendInt(0)
    }
}

/** Values of variable length, one behind the other. */
private sealed abstract class BytesBuilder extends LeafBuilder {

  private val offsets = new Offsets
  private val bytes = new GrowingBuffer

  override protected def buffers: Seq[GrowingBuffer] = Seq(offsets.buffer, bytes)

  override protected def finish(): Unit = offsets.finish()

  override protected def appendPlaceholder(): Unit = offsets.append(bytes.length)

  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    put(dictionary.decodeToBinary(id))

  protected def put(array: Array[Byte]): Unit =
    put(array, Platform.BYTE_ARRAY_OFFSET, array.length)

  protected def put(base: AnyRef, offset: Long, length: Int): Unit = {
    offsets.append(bytes.length + length)
    Platform.copyMemory(base, offset, null, bytes.append(length), length)
  }

  def appendBytes(array: Array[Byte]): Unit = {
    note(isNull = false)
    put(array)
  }
}

private final class StringBuilder extends BytesBuilder {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val string = from.getUTF8String(i)
    put(string.getBaseObject, string.getBaseOffset, string.numBytes())
  }
}

private final class BinaryBuilder extends BytesBuilder {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    put(from.getBinary(i))
}
