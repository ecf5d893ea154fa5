package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.{GrowingBuffer, NativeMemoryHolder}
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.execution.vectorized.Dictionary
import org.apache.spark.sql.types._

/** More bytes or elements in a column than 32-bit offsets can address, or more bytes than a batch may have. */
private[vector] final class BatchTooLargeException extends RuntimeException

/** Collects the values of a column in native memory, in Arrow's layout. */
private[vector] abstract class ColumnBuilder extends NativeMemoryHolder {

  private val validity = new BitBuffer
  private var nullCount = 0
  private var rows = 0

  /** The values collected since the last `clear`. */
  def count: Int = rows

  final def clear(): Unit = {
    validity.clear()
    nullCount = 0
    rows = 0
    clearValues()
    children.foreach(_.clear())
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
    validity.append(!isNull)
    rows += 1
  }

  /** Describes what was collected, and hands it over to the native side. */
  final def handOver(descriptor: BatchDescriptor): Unit =
    describe(descriptor, descriptor.appendHandedOver)

  /** Describes what was collected, which stays here. */
  final def lend(descriptor: BatchDescriptor): Unit = describe(descriptor, descriptor.appendLent)

  // See "collected" in native/vector.
  protected[vector] def describe(
      descriptor: BatchDescriptor,
      append: GrowingBuffer => Unit
  ): Unit = {
    if (nullCount > 0) append(validity.bytes) else descriptor.appendNone()
    finish()
    buffers.foreach(append)
    childCount.foreach(count => descriptor.append(count))
    children.foreach(_.describe(descriptor, append))
  }

  // Asked for each row, so that it has to be quick.
  private lazy val held: Array[GrowingBuffer] =
    (validity.bytes +: buffers).toArray ++ children.flatMap(_.held)

  /** The bytes of what was collected. */
  final def length: Long = {
    var bytes = 0L
    var i = 0
    while (i < held.length) {
      bytes += held(i).length
      i += 1
    }
    bytes
  }

  override def capacity: Long = held.map(_.capacity).sum

  override def free(): Unit = held.foreach(_.free())

  /** The buffers of Arrow's layout, besides validity. */
  protected def buffers: Seq[GrowingBuffer] = Nil

  protected def children: Seq[ColumnBuilder] = Nil

  /** The values of a child, if they need not be as many as there are here. */
  protected def childCount: Option[Int] = None

  protected def clearValues(): Unit = buffers.foreach(_.clear())

  /** Completes the buffers. */
  protected def finish(): Unit = {}

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
    case decimal: DecimalType => new DecimalBuilder(decimal)
    case _: StringType => new StringBuilder
    case BinaryType => new BinaryBuilder
    case other => throw new IllegalArgumentException(s"Unsupported type $other")
  }
}
