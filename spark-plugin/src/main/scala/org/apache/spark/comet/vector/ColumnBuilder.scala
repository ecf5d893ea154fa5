package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.{GrowingBuffer, NativeMemoryHolder}
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.execution.vectorized.Dictionary
import org.apache.spark.sql.types._

/** More bytes or elements in a column than 32-bit offsets can address. */
private[vector] class ColumnTooLargeException extends RuntimeException

/** Collects the values of a column in native memory, in the form that the native side reads. */
private[vector] abstract class ColumnBuilder extends NativeMemoryHolder {

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

  override def capacity: Long = nulls.capacity

  override def free(): Unit = nulls.free()

  protected def clearValues(): Unit

  protected def appendValue(values: SpecializedGetters, i: Int): Unit

  protected def appendPlaceholder(): Unit
}

/** A builder of values that a dictionary can hold. */
private[vector] abstract class LeafBuilder extends ColumnBuilder {

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
