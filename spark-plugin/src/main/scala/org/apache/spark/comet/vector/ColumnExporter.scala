package org.apache.spark.comet.vector

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.comet.memory.{GrowingBuffer, NativeMemoryHolder}
import org.apache.spark.sql.execution.vectorized.{
  Dictionary,
  OffHeapColumnVector,
  WritableColumnVector
}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray}
import org.apache.spark.unsafe.Platform

/** How a column is described to the native side: see `native/vector`. */
private[vector] object ColumnKind {
  val AllNull = 0L
  val Values = 1L
  val Bytes = 2L
  val Elements = 3L
  val Struct = 4L
  val Dictionary = 5L
  val Arrow = 6L
}

/** Describes a column of one type to the native side. Spark's off-heap vectors are read where they are; of their
  * dictionaries each entry is decoded once. Every other vector is asked value by value, and the values are collected in
  * native memory.
  */
private[vector] final class ColumnExporter(dataType: DataType) extends NativeMemoryHolder {

  private val storage = CometVector.storageType(dataType)
  // What was needed so far of the following.
  private val holders = ArrayBuffer.empty[NativeMemoryHolder]
  private lazy val builder = hold(ColumnBuilder.of(storage))
  private lazy val entries = hold(new DictionaryEntries(storage))
  private lazy val children =
    CometVector.childTypes(storage).map(child => hold(new ColumnExporter(child))).toArray

  private def hold[T <: NativeMemoryHolder](holder: T): T = {
    holders += holder
    holder
  }

  /** Describes `count` rows from row `from`. Valid until the next call. */
  def describe(column: ColumnVector, from: Int, count: Int, numbers: GrowingBuffer): Unit =
    column match {
      case missing: WritableColumnVector if missing.isAllNull =>
        numbers.appendLong(ColumnKind.AllNull)
      case inPlace: OffHeapColumnVector if VectorAccess.available && hasStorage(inPlace) =>
        if (inPlace.hasDictionary) describeDictionary(inPlace, from, count, numbers)
        else describeInPlace(inPlace, from, count, numbers)
      case other => collect(other, from, count, numbers)
    }

  // A reader's vector may be of another type than the column, which its getters make up for.
  private def hasStorage(column: ColumnVector): Boolean = (column.dataType, storage) match {
    case (_: StringType, _: StringType) => true
    case (_: ArrayType, _: ArrayType) | (_: MapType, _: MapType) => true
    case (has: StructType, wants: StructType) => has.length == wants.length
    case (has, wants) => has == wants
  }

  private def collect(
      column: ColumnVector,
      from: Int,
      count: Int,
      numbers: GrowingBuffer
  ): Unit = {
    builder.clear()
    val values = new ColumnarArray(column, from, count)
    var i = 0
    while (i < count) {
      builder.append(values, i)
      i += 1
    }
    builder.describe(numbers)
  }

  private def nulls(column: OffHeapColumnVector, from: Int): Long =
    if (column.hasNull) VectorAccess.nulls(column) + from else 0

  private def describeInPlace(
      column: OffHeapColumnVector,
      from: Int,
      count: Int,
      numbers: GrowingBuffer
  ): Unit = storage match {
    case ArrayType(_, _) | MapType(_, _, _) =>
      numbers.appendLong(ColumnKind.Elements)
      appendSpans(column, from, numbers)
      val elements = elementCount(column, from, count)
      numbers.appendLong(elements)
      describeChildren(column, 0, elements, numbers)
    case _: StructType | CalendarIntervalType | VariantType =>
      numbers.appendLong(ColumnKind.Struct)
      numbers.appendLong(nulls(column, from))
      describeChildren(column, from, count, numbers)
    case _ if ColumnExporter.isBytes(storage) =>
      numbers.appendLong(ColumnKind.Bytes)
      appendSpans(column, from, numbers)
      numbers.appendLong(
        column.arrayData().asInstanceOf[OffHeapColumnVector].valuesNativeAddress()
      )
    case _ =>
      numbers.appendLong(ColumnKind.Values)
      numbers.appendLong(nulls(column, from))
      numbers.appendLong(column.valuesNativeAddress() + from.toLong * ColumnExporter.width(storage))
  }

  private def appendSpans(column: OffHeapColumnVector, from: Int, numbers: GrowingBuffer): Unit = {
    numbers.appendLong(nulls(column, from))
    numbers.appendLong(VectorAccess.offsets(column) + from * 4L)
    numbers.appendLong(VectorAccess.lengths(column) + from * 4L)
  }

  private def describeChildren(
      column: OffHeapColumnVector,
      from: Int,
      count: Int,
      numbers: GrowingBuffer
  ): Unit = {
    var i = 0
    while (i < children.length) {
      children(i).describe(column.getChild(i), from, count, numbers)
      i += 1
    }
  }

  /** The elements that the rows refer to, from the first of the child vector. */
  private def elementCount(column: OffHeapColumnVector, from: Int, count: Int): Int = {
    var end = 0
    var row = from
    while (row < from + count) {
      if (!column.isNullAt(row)) {
        end = math.max(end, column.getArrayOffset(row) + column.getArrayLength(row))
      }
      row += 1
    }
    end
  }

  private def describeDictionary(
      column: OffHeapColumnVector,
      from: Int,
      count: Int,
      numbers: GrowingBuffer
  ): Unit = {
    val ids = column.getDictionaryIds.asInstanceOf[OffHeapColumnVector].valuesNativeAddress() +
      from * 4L
    var largest = -1
    var i = 0
    while (i < count) {
      if (!column.isNullAt(from + i)) {
        largest = math.max(largest, Platform.getInt(null, ids + i * 4L))
      }
      i += 1
    }
    if (largest < 0) {
      numbers.appendLong(ColumnKind.AllNull)
    } else {
      numbers.appendLong(ColumnKind.Dictionary)
      numbers.appendLong(nulls(column, from))
      numbers.appendLong(ids)
      entries.describe(VectorAccess.dictionary(column), largest + 1, numbers)
    }
  }

  override def capacity: Long = holders.map(_.capacity).sum

  override def free(): Unit = holders.foreach(_.free())
}

/** The entries of a column's dictionary, decoded as they are used. Batches of one column chunk share a dictionary. */
private final class DictionaryEntries(dataType: DataType) extends NativeMemoryHolder {

  private val builder = ColumnBuilder.leafOf(dataType)
  private var dictionary: Dictionary = _

  def describe(current: Dictionary, count: Int, numbers: GrowingBuffer): Unit = {
    if (current ne dictionary) {
      dictionary = current
      builder.clear()
    }
    while (builder.count < count)
      builder.appendEntry(current, builder.count)
    numbers.appendLong(builder.count)
    builder.describe(numbers)
  }

  override def capacity: Long = builder.capacity

  override def free(): Unit = builder.free()
}

private object ColumnExporter {

  def isBytes(storage: DataType): Boolean = storage match {
    case _: StringType | BinaryType => true
    case decimal: DecimalType => decimal.precision > Decimal.MAX_LONG_DIGITS
    case _ => false
  }

  /** Bytes of a value in Spark's off-heap vectors. */
  def width(storage: DataType): Int = storage match {
    case BooleanType | ByteType => 1
    case ShortType => 2
    case IntegerType | FloatType | DateType | _: YearMonthIntervalType => 4
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS => 4
    case _ => 8
  }
}
