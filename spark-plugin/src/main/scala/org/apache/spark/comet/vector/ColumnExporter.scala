package org.apache.spark.comet.vector

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.comet.memory.NativeMemoryHolder
import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray}

/** How a column is described to the native side: see `native/vector`. */
private[vector] object ColumnKind {
  val AllNull = 0L
  val Values = 1L
  val Bytes = 2L
  val Elements = 3L
  val Struct = 4L
  val Dictionary = 5L
  val Arrow = 6L
  val Collected = 7L
}

/** Describes a column of one type to the native side. Spark's writable vectors are read where they are, off-heap or in
  * arrays; of their dictionaries each entry is decoded once. Every other vector is asked value by value, and the values
  * are collected in native memory, which the native side takes over.
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
  def describe(column: ColumnVector, from: Int, count: Int, descriptor: BatchDescriptor): Unit =
    column match {
      case _ if storage == NullType => descriptor.append(ColumnKind.AllNull)
      case writable: WritableColumnVector =>
        if (writable.isAllNull) {
          descriptor.append(ColumnKind.AllNull)
        } else {
          VectorMemory.of(writable).filter(_ => hasStorage(writable)) match {
            case Some(memory) if writable.hasDictionary =>
              describeDictionary(writable, memory, from, count, descriptor)
            case Some(memory) => describeInPlace(writable, memory, from, count, descriptor)
            case None => collect(writable, from, count, descriptor)
          }
        }
      case other => collect(other, from, count, descriptor)
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
      descriptor: BatchDescriptor
  ): Unit = {
    builder.clear()
    val values = new ColumnarArray(column, from, count)
    var i = 0
    while (i < count) {
      builder.append(values, i)
      descriptor.requireRoom(builder.length)
      i += 1
    }
    descriptor.append(ColumnKind.Collected)
    builder.handOver(descriptor)
  }

  private def describeInPlace(
      column: WritableColumnVector,
      memory: VectorMemory,
      from: Int,
      count: Int,
      descriptor: BatchDescriptor
  ): Unit = storage match {
    case ArrayType(_, _) | MapType(_, _, _) =>
      descriptor.append(ColumnKind.Elements)
      memory.appendNulls(column, from, descriptor)
      memory.appendSpans(column, from, descriptor)
      val (first, elements) = elementsOf(column, from, count)
      descriptor.append(first)
      descriptor.append(elements)
      describeChildren(column, first, elements, descriptor)
    case _: StructType | CalendarIntervalType | VariantType =>
      descriptor.append(ColumnKind.Struct)
      memory.appendNulls(column, from, descriptor)
      describeChildren(column, from, count, descriptor)
    case _ if ColumnExporter.isBytes(storage) =>
      descriptor.append(ColumnKind.Bytes)
      memory.appendNulls(column, from, descriptor)
      memory.appendSpans(column, from, descriptor)
      memory.appendValues(column.arrayData(), 0, 1, descriptor)
    case _ =>
      descriptor.append(ColumnKind.Values)
      memory.appendNulls(column, from, descriptor)
      memory.appendValues(column, from, ColumnExporter.width(storage), descriptor)
  }

  private def describeChildren(
      column: WritableColumnVector,
      from: Int,
      count: Int,
      descriptor: BatchDescriptor
  ): Unit = {
    var i = 0
    while (i < children.length) {
      children(i).describe(column.getChild(i), from, count, descriptor)
      i += 1
    }
  }

  /** The first element of the child vector that the rows refer to, and how many there are up to the last one. */
  private def elementsOf(column: WritableColumnVector, from: Int, count: Int): (Int, Int) = {
    var first = Int.MaxValue
    var end = 0
    var row = from
    while (row < from + count) {
      if (!column.isNullAt(row) && column.getArrayLength(row) > 0) {
        first = math.min(first, column.getArrayOffset(row))
        end = math.max(end, column.getArrayOffset(row) + column.getArrayLength(row))
      }
      row += 1
    }
    if (end == 0) (0, 0) else (first, end - first)
  }

  private def describeDictionary(
      column: WritableColumnVector,
      memory: VectorMemory,
      from: Int,
      count: Int,
      descriptor: BatchDescriptor
  ): Unit = {
    val ids = column.getDictionaryIds
    var largest = -1
    var row = from
    while (row < from + count) {
      if (!column.isNullAt(row)) {
        largest = math.max(largest, ids.getDictId(row))
      }
      row += 1
    }
    if (largest < 0) {
      descriptor.append(ColumnKind.AllNull)
    } else {
      descriptor.append(ColumnKind.Dictionary)
      memory.appendNulls(column, from, descriptor)
      memory.appendValues(ids, from, 4, descriptor)
      entries.describe(VectorMemory.dictionary(column), largest + 1, descriptor)
    }
  }

  override def capacity: Long = holders.map(_.capacity).sum

  override def free(): Unit = holders.foreach(_.free())
}

/** The entries of a column's dictionary, decoded as they are used. Batches of one column chunk share a dictionary. */
private final class DictionaryEntries(dataType: DataType) extends NativeMemoryHolder {

  private val builder = ColumnBuilder.leafOf(dataType)
  private var dictionary: Dictionary = _

  def describe(current: Dictionary, count: Int, descriptor: BatchDescriptor): Unit = {
    if (current ne dictionary) {
      dictionary = current
      builder.clear()
    }
    while (builder.count < count)
      builder.appendEntry(current, builder.count)
    descriptor.append(builder.count)
    builder.lend(descriptor)
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

  /** Bytes of a value in Spark's writable vectors. */
  def width(storage: DataType): Int = storage match {
    case BooleanType | ByteType => 1
    case ShortType => 2
    case IntegerType | FloatType | DateType | _: YearMonthIntervalType => 4
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS => 4
    case _ => 8
  }
}
