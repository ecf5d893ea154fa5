package org.apache.spark.comet.vector

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A column that reads Arrow buffers in native memory. It owns nothing: the decoder points it at each batch, and the
  * batch before is gone then.
  *
  * Validity and booleans are bitmaps, least significant bit first; offsets are 32-bit; decimals have 16 bytes, little
  * endian, two's complement (Arrow's columnar format).
  *
  * @param children fields of a struct (of an interval: months, days, microseconds; of a variant: value, metadata), the
  *                 element of an array, or key and value of a map
  */
final class CometVector(dataType: DataType, children: Array[CometVector])
    extends ColumnVector(dataType) {

  private val alwaysNull = dataType == NullType
  private var batch: CometColumns = _
  private var index = 0
  private var nullCount = 0
  private var validity = 0L
  private var offsets = 0L
  private var values = 0L

  /** Points this vector and its children at a batch.
    *
    * @param buffers null count, validity, offsets and values of each vector, in pre-order
    * @param position index of this vector's first entry
    * @return index behind the last entry of the subtree
    */
  private[vector] def point(buffers: Array[Long], position: Int): Int = {
    nullCount = buffers(position).toInt
    validity = buffers(position + 1)
    offsets = buffers(position + 2)
    values = buffers(position + 3)
    var next = position + CometVector.EntriesPerVector
    var i = 0
    while (i < children.length) {
      next = children(i).point(buffers, next)
      i += 1
    }
    next
  }

  /** Makes this vector the column `column` of a batch. */
  private[vector] def joinBatch(columns: CometColumns, column: Int): Unit = {
    batch = columns
    index = column
  }

  /** Hands the column on by reference, as `Native.exportColumn` does; 0 if it is no column of its own. */
  private[vector] def exportArray(): Long = if (batch == null) 0L else batch.exportColumn(index)

  /** The columns whose batch this vector is part of, if it is a column of its own. */
  private[vector] def columns: Option[CometColumns] = Option(batch)

  override def hasNull: Boolean = nullCount > 0

  override def numNulls: Int = nullCount

  override def isNullAt(row: Int): Boolean =
    if (validity == 0) alwaysNull else !bit(validity, row)

  private def bit(bitmap: Long, index: Int): Boolean =
    ((Platform.getByte(null, bitmap + (index >> 3)) >> (index & 7)) & 1) != 0

  private def offset(index: Int): Int = Platform.getInt(null, offsets + index * 4L)

  override def getBoolean(row: Int): Boolean = bit(values, row)

  override def getByte(row: Int): Byte = Platform.getByte(null, values + row)

  override def getShort(row: Int): Short = Platform.getShort(null, values + row * 2L)

  override def getInt(row: Int): Int = Platform.getInt(null, values + row * 4L)

  override def getLong(row: Int): Long = Platform.getLong(null, values + row * 8L)

  override def getFloat(row: Int): Float = Platform.getFloat(null, values + row * 4L)

  override def getDouble(row: Int): Double = Platform.getDouble(null, values + row * 8L)

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) {
      null
    } else if (precision <= Decimal.MAX_LONG_DIGITS) {
      Decimal.createUnsafe(Platform.getLong(null, values + row * 16L), precision, scale)
    } else {
      Decimal(BigDecimal(wideDecimal(values + row * 16L, scale)), precision, scale)
    }

  // Most numbers of wide types are small.
  private def wideDecimal(address: Long, scale: Int): java.math.BigDecimal = {
    val low = Platform.getLong(null, address)
    if (Platform.getLong(null, address + 8) == low >> 63) {
      java.math.BigDecimal.valueOf(low, scale)
    } else {
      val bigEndian = new Array[Byte](16)
      var i = 0
      while (i < 16) {
        bigEndian(i) = Platform.getByte(null, address + 15 - i)
        i += 1
      }
      new java.math.BigDecimal(new java.math.BigInteger(bigEndian), scale)
    }
  }

  override def getUTF8String(row: Int): UTF8String =
    if (isNullAt(row)) {
      null
    } else {
      val start = offset(row)
      UTF8String.fromAddress(null, values + start, offset(row + 1) - start)
    }

  override def getBinary(row: Int): Array[Byte] =
    if (isNullAt(row)) {
      null
    } else {
      val start = offset(row)
      val bytes = new Array[Byte](offset(row + 1) - start)
      Platform.copyMemory(null, values + start, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)
      bytes
    }

  override def getArray(row: Int): ColumnarArray =
    if (isNullAt(row)) {
      null
    } else {
      val start = offset(row)
      new ColumnarArray(children(0), start, offset(row + 1) - start)
    }

  override def getMap(row: Int): ColumnarMap =
    if (isNullAt(row)) {
      null
    } else {
      val start = offset(row)
      new ColumnarMap(children(0), children(1), start, offset(row + 1) - start)
    }

  override def getChild(ordinal: Int): ColumnVector = children(ordinal)

  // The decoder owns the memory.
  override def close(): Unit = {}

  override def closeIfFreeable(): Unit = {}
}

object CometVector {

  /** Longs that describe one vector. */
  val EntriesPerVector = 4

  /** A vector, with its children, for values of the given type. */
  def of(dataType: DataType): CometVector = {
    val storage = storageType(dataType)
    new CometVector(storage, childTypes(storage).map(of).toArray)
  }

  /** Number of vectors that carry a value of the given type. */
  def count(dataType: DataType): Int = 1 + childTypes(storageType(dataType)).map(count).sum

  private[vector] def storageType(dataType: DataType): DataType = dataType match {
    case udt: UserDefinedType[_] => storageType(udt.sqlType)
    case other => other
  }

  private[vector] def childTypes(dataType: DataType): Seq[DataType] = dataType match {
    case struct: StructType => struct.fields.toSeq.map(_.dataType)
    case ArrayType(element, _) => Seq(element)
    case MapType(key, value, _) => Seq(key, value)
    case CalendarIntervalType => Seq(IntegerType, IntegerType, LongType)
    case VariantType => Seq(BinaryType, BinaryType)
    case _ => Nil
  }
}
