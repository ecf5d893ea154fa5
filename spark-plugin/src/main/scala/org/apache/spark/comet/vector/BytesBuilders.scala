package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.execution.vectorized.Dictionary
import org.apache.spark.sql.types.DecimalType
import org.apache.spark.unsafe.Platform

/** Where each row's bytes or elements lie. */
private final class Spans {

  private val offsets = new GrowingBuffer
  private val lengths = new GrowingBuffer

  def append(offset: Long, length: Int): Unit = {
    if (offset + length > Int.MaxValue) {
      throw new ColumnTooLargeException
    }
    offsets.appendInt(offset.toInt)
    lengths.appendInt(length)
  }

  def clear(): Unit = {
    offsets.clear()
    lengths.clear()
  }

  def describe(numbers: GrowingBuffer): Unit = {
    numbers.appendLong(offsets.address)
    numbers.appendLong(lengths.address)
  }

  def capacity: Long = offsets.capacity + lengths.capacity

  def free(): Unit = {
    offsets.free()
    lengths.free()
  }
}

/** Values of variable length, one behind the other. */
private sealed abstract class BytesBuilder extends LeafBuilder {

  private val spans = new Spans
  private val bytes = new GrowingBuffer

  override def describe(numbers: GrowingBuffer): Unit = {
    numbers.appendLong(ColumnKind.Bytes)
    numbers.appendLong(nullsAddress)
    spans.describe(numbers)
    numbers.appendLong(bytes.address)
  }

  override def capacity: Long = super.capacity + spans.capacity + bytes.capacity

  override def free(): Unit = {
    super.free()
    spans.free()
    bytes.free()
  }

  override protected def clearValues(): Unit = {
    spans.clear()
    bytes.clear()
  }

  override protected def appendPlaceholder(): Unit = spans.append(bytes.length, 0)

  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    put(dictionary.decodeToBinary(id))

  protected def put(array: Array[Byte]): Unit =
    put(array, Platform.BYTE_ARRAY_OFFSET, array.length)

  protected def put(base: AnyRef, offset: Long, length: Int): Unit = {
    spans.append(bytes.length, length)
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

/** Decimals of more than 18 digits: big-endian and two's complement. */
private final class WideDecimalBuilder(decimal: DecimalType) extends BytesBuilder {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val value = from.getDecimal(i, decimal.precision, decimal.scale)
    put(value.toJavaBigDecimal.unscaledValue().toByteArray)
  }
}
