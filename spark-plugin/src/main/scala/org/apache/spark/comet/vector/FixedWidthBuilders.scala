package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.execution.vectorized.Dictionary
import org.apache.spark.sql.types.{Decimal, DecimalType}
import org.apache.spark.unsafe.Platform

/** Values of fixed width, one behind the other. */
private sealed abstract class FixedWidthBuilder(width: Int) extends LeafBuilder {

  protected val values = new GrowingBuffer

  override def describe(numbers: GrowingBuffer): Unit = {
    numbers.appendLong(ColumnKind.Values)
    numbers.appendLong(nullsAddress)
    numbers.appendLong(values.address)
  }

  override def capacity: Long = super.capacity + values.capacity

  override def free(): Unit = {
    super.free()
    values.free()
  }

  override protected def clearValues(): Unit = values.clear()

  override protected def appendPlaceholder(): Unit =
    Platform.setMemory(values.append(width), 0, width)
}

private final class BooleanBuilder extends FixedWidthBuilder(1) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    values.appendByte(if (from.getBoolean(i)) 1 else 0)
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

/** Decimals of up to 18 digits: 4 bytes up to 9 digits, else 8. */
private final class DecimalBuilder(decimal: DecimalType)
    extends FixedWidthBuilder(if (decimal.precision <= Decimal.MAX_INT_DIGITS) 4 else 8) {

  private val isInt = decimal.precision <= Decimal.MAX_INT_DIGITS

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit =
    put(from.getDecimal(i, decimal.precision, decimal.scale).toUnscaledLong)

  override protected def appendDecoded(dictionary: Dictionary, id: Int): Unit =
    put(if (isInt) dictionary.decodeToInt(id) else dictionary.decodeToLong(id))

  private def put(unscaled: Long): Unit =
    if (isInt) values.appendInt(unscaled.toInt) else values.appendLong(unscaled)
}
