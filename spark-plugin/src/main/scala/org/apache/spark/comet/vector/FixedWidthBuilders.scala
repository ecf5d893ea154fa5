package org.apache.spark.comet.vector

import java.math.BigInteger

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.execution.vectorized.Dictionary
import org.apache.spark.sql.types.{Decimal, DecimalType}
import org.apache.spark.unsafe.Platform

/** Values of fixed width, one behind the other. */
private sealed abstract class FixedWidthBuilder(width: Int) extends LeafBuilder {

  protected val values = new GrowingBuffer

  override protected def buffers: Seq[GrowingBuffer] = Seq(values)

  override protected def appendPlaceholder(): Unit =
    Platform.setMemory(values.append(width), 0, width)
}

private final class BooleanBuilder extends LeafBuilder {
  private val values = new BitBuffer
  override protected def buffers: Seq[GrowingBuffer] = Seq(values.bytes)
  override protected def clearValues(): Unit = values.clear()
  override protected def appendPlaceholder(): Unit = values.append(false)
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    values.append(from.getBoolean(i))
  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    throw new UnsupportedOperationException("booleans have no dictionary")
}

private final class ByteBuilder extends FixedWidthBuilder(1) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    values.appendByte(from.getByte(i))
  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    values.appendByte(dictionary.decodeToInt(id).toByte)
}

private final class ShortBuilder extends FixedWidthBuilder(2) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    Platform.putShort(null, values.append(2), from.getShort(i))
  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    Platform.putShort(null, values.append(2), dictionary.decodeToInt(id).toShort)
}

private final class IntBuilder extends FixedWidthBuilder(4) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    values.appendInt(from.getInt(i))
  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    values.appendInt(dictionary.decodeToInt(id))
  def appendInt(value: Int): Unit = {
    note(isNull = false)
    values.appendInt(value)
  }
}

private final class LongBuilder extends FixedWidthBuilder(8) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    values.appendLong(from.getLong(i))
  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    values.appendLong(dictionary.decodeToLong(id))
  def appendLong(value: Long): Unit = {
    note(isNull = false)
    values.appendLong(value)
  }
}

private final class FloatBuilder extends FixedWidthBuilder(4) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    Platform.putFloat(null, values.append(4), from.getFloat(i))
  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    Platform.putFloat(null, values.append(4), dictionary.decodeToFloat(id))
}

private final class DoubleBuilder extends FixedWidthBuilder(8) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    Platform.putDouble(null, values.append(8), from.getDouble(i))
  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    Platform.putDouble(null, values.append(8), dictionary.decodeToDouble(id))
}

/** Decimals: 16 bytes, little-endian. */
private final class DecimalBuilder(decimal: DecimalType) extends FixedWidthBuilder(16) {

  private val isInt = decimal.precision <= Decimal.MAX_INT_DIGITS
  private val isLong = decimal.precision <= Decimal.MAX_LONG_DIGITS

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val value = from.getDecimal(i, decimal.precision, decimal.scale)
    if (isLong) put(value.toUnscaledLong) else put(value.toJavaBigDecimal.unscaledValue())
  }

  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    if (isInt) put(dictionary.decodeToInt(id))
    else if (isLong) put(dictionary.decodeToLong(id))
    else put(new BigInteger(dictionary.decodeToBinary(id)))

  private def put(unscaled: Long): Unit = {
    values.appendLong(unscaled)
    values.appendLong(unscaled >> 63)
  }

  private def put(unscaled: BigInteger): Unit = {
    values.appendLong(unscaled.longValue())
    values.appendLong(unscaled.shiftRight(64).longValue())
  }
}
