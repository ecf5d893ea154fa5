package org.apache.spark.comet.vector

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.execution.vectorized.Dictionary
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

/** More bytes or elements in a column than 32-bit offsets can address. */
private[vector] class ColumnTooLargeException extends RuntimeException

/** Collects the values of a column in native memory, in the form that the native side reads. */
private[vector] sealed abstract class ColumnBuilder {

  private val nulls = new GrowingBuffer
  private var nullCount = 0
  private var rows = 0

  /** The values collected since the last `clear`. */
  def count: Int = rows

  final def clear(): Unit = {
    nulls.clear()
    nullCount = 0
    rows = 0
    clearValues()
  }

  final def append(values: SpecializedGetters, i: Int): Unit =
    if (values.isNullAt(i)) {
      appendNull()
    } else {
      note(isNull = false)
      appendValue(values, i)
    }

  final def appendNull(): Unit = {
    note(isNull = true)
    appendPlaceholder()
  }

  protected final def note(isNull: Boolean): Unit = {
    if (isNull) {
      nullCount += 1
    }
    nulls.appendByte(if (isNull) 1 else 0)
    rows += 1
  }

  protected final def nullsAddress: Long = if (nullCount > 0) nulls.address else 0

  /** Writes the column's description: see `native/vector`. */
  def describe(numbers: GrowingBuffer): Unit

  def capacity: Long = nulls.capacity

  def free(): Unit = nulls.free()

  protected def clearValues(): Unit

  protected def appendValue(values: SpecializedGetters, i: Int): Unit

  protected def appendPlaceholder(): Unit
}

/** A builder of values that a dictionary can hold. */
private[vector] sealed abstract class LeafBuilder extends ColumnBuilder {

  final def appendEntry(dictionary: Dictionary, id: Int): Unit = {
    note(isNull = false)
    appendDecoded(dictionary, id)
  }

  protected def appendDecoded(dictionary: Dictionary, id: Int): Unit
}

private[vector] object ColumnBuilder {

  def of(dataType: DataType): ColumnBuilder = dataType match {
    case udt: UserDefinedType[_] => of(udt.sqlType)
    case struct: StructType => new StructBuilder(struct)
    case ArrayType(element, _) => new ListBuilder(of(element))
    case MapType(key, value, _) => new MapBuilder(of(key), of(value))
    case CalendarIntervalType => new IntervalBuilder
    case VariantType => new VariantBuilder
    case NullType => new NullBuilder
    case leaf => leafOf(leaf)
  }

  def leafOf(dataType: DataType): LeafBuilder = dataType match {
    case BooleanType => new BooleanBuilder
    case ByteType => new ByteBuilder
    case ShortType => new ShortBuilder
    case IntegerType | DateType | _: YearMonthIntervalType => new IntBuilder
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType | _: TimeType =>
      new LongBuilder
    case FloatType => new FloatBuilder
    case DoubleType => new DoubleBuilder
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
      new DecimalBuilder(decimal)
    case decimal: DecimalType => new WideDecimalBuilder(decimal)
    case _: StringType => new StringBuilder
    case BinaryType => new BinaryBuilder
    case other => throw new IllegalArgumentException(s"Unsupported type $other")
  }
}

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

private final class NullBuilder extends ColumnBuilder {
  override def describe(numbers: GrowingBuffer): Unit = numbers.appendLong(ColumnKind.AllNull)
  override protected def clearValues(): Unit = {}
  override protected def appendValue(values: SpecializedGetters, i: Int): Unit = {}
  override protected def appendPlaceholder(): Unit = {}
}

private sealed abstract class NestedBuilder(children: Seq[ColumnBuilder]) extends ColumnBuilder {
  override def capacity: Long = super.capacity + children.map(_.capacity).sum
  override def free(): Unit = {
    super.free()
    children.foreach(_.free())
  }
  override protected def clearValues(): Unit = children.foreach(_.clear())
}

private sealed abstract class FieldsBuilder(fields: Array[ColumnBuilder])
    extends NestedBuilder(fields.toSeq) {

  override def describe(numbers: GrowingBuffer): Unit = {
    numbers.appendLong(ColumnKind.Struct)
    numbers.appendLong(nullsAddress)
    fields.foreach(_.describe(numbers))
  }

  override protected def appendPlaceholder(): Unit = fields.foreach(_.appendNull())
}

private final class StructBuilder(fields: Array[ColumnBuilder]) extends FieldsBuilder(fields) {

  def this(struct: StructType) = this(struct.fields.map(f => ColumnBuilder.of(f.dataType)))

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val struct = from.getStruct(i, fields.length)
    var field = 0
    while (field < fields.length) {
      fields(field).append(struct, field)
      field += 1
    }
  }
}

private final class IntervalBuilder(months: IntBuilder, days: IntBuilder, micros: LongBuilder)
    extends FieldsBuilder(Array(months, days, micros)) {

  def this() = this(new IntBuilder, new IntBuilder, new LongBuilder)

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val interval = from.getInterval(i)
    months.appendInt(interval.months)
    days.appendInt(interval.days)
    micros.appendLong(interval.microseconds)
  }
}

private final class VariantBuilder(value: BinaryBuilder, metadata: BinaryBuilder)
    extends FieldsBuilder(Array(value, metadata)) {

  def this() = this(new BinaryBuilder, new BinaryBuilder)

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val variant = from.getVariant(i)
    value.appendBytes(variant.getValue)
    metadata.appendBytes(variant.getMetadata)
  }
}

private sealed abstract class ElementsBuilder(elements: Seq[ColumnBuilder])
    extends NestedBuilder(elements) {

  protected val spans = new Spans

  override def describe(numbers: GrowingBuffer): Unit = {
    numbers.appendLong(ColumnKind.Elements)
    numbers.appendLong(nullsAddress)
    spans.describe(numbers)
    numbers.appendLong(elements.head.count)
    elements.foreach(_.describe(numbers))
  }

  override def capacity: Long = super.capacity + spans.capacity

  override def free(): Unit = {
    super.free()
    spans.free()
  }

  override protected def clearValues(): Unit = {
    super.clearValues()
    spans.clear()
  }

  override protected def appendPlaceholder(): Unit = spans.append(elements.head.count, 0)
}

private final class ListBuilder(element: ColumnBuilder) extends ElementsBuilder(Seq(element)) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val array = from.getArray(i)
    val length = array.numElements()
    spans.append(element.count, length)
    var j = 0
    while (j < length) {
      element.append(array, j)
      j += 1
    }
  }
}

private final class MapBuilder(key: ColumnBuilder, value: ColumnBuilder)
    extends ElementsBuilder(Seq(key, value)) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val map = from.getMap(i)
    val (keys, values) = (map.keyArray(), map.valueArray())
    val length = map.numElements()
    spans.append(key.count, length)
    var j = 0
    while (j < length) {
      key.append(keys, j)
      value.append(values, j)
      j += 1
    }
  }
}
