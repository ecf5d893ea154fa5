package org.apache.spark.comet

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.security.MessageDigest
import java.util.Arrays

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

/** A row as bytes in which every bit of every value counts and nothing else does: not the padding,
  * offsets or null slots of an UnsafeRow, nor the class of the row.
  */
object CanonicalRow {

  /** Longer rows are kept as their beginning and a digest. */
  private val Whole = 512

  final class Bytes(val array: Array[Byte]) extends Serializable {
    override def equals(other: Any): Boolean = other match {
      case that: Bytes => Arrays.equals(array, that.array)
      case _ => false
    }
    override def hashCode: Int = Arrays.hashCode(array)
    override def toString: String = array.take(200).map("%02x".format(_)).mkString
  }

  def bytes(row: InternalRow, schema: StructType): Bytes = {
    val buffer = new ByteArrayOutputStream(256)
    val out = new DataOutputStream(buffer)
    writeStruct(row, schema, out)
    val all = buffer.toByteArray
    if (all.length <= Whole) new Bytes(all)
    else {
      val digest = MessageDigest.getInstance("SHA-256").digest(all)
      new Bytes(all.take(64) ++ digest ++ BigInt(all.length).toByteArray)
    }
  }

  private def writeStruct(row: InternalRow, schema: StructType, out: DataOutputStream): Unit = {
    out.writeInt(schema.length)
    schema.fields.indices.foreach(i => write(row, i, schema(i).dataType, out))
  }

  private def writeBytes(bytes: Array[Byte], out: DataOutputStream): Unit = {
    out.writeInt(bytes.length)
    out.write(bytes)
  }

  private def write(from: SpecializedGetters, i: Int, t: DataType, out: DataOutputStream): Unit =
    if (t == NullType || from.isNullAt(i)) out.writeByte(0)
    else {
      out.writeByte(1)
      t match {
        case BooleanType => out.writeBoolean(from.getBoolean(i))
        case ByteType => out.writeByte(from.getByte(i))
        case ShortType => out.writeShort(from.getShort(i))
        case IntegerType | DateType | _: YearMonthIntervalType => out.writeInt(from.getInt(i))
        case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType | _: TimeType =>
          out.writeLong(from.getLong(i))
        case FloatType => out.writeInt(java.lang.Float.floatToRawIntBits(from.getFloat(i)))
        case DoubleType => out.writeLong(java.lang.Double.doubleToRawLongBits(from.getDouble(i)))
        case d: DecimalType =>
          val value = from.getDecimal(i, d.precision, d.scale).toJavaBigDecimal
          writeBytes(value.setScale(d.scale).unscaledValue.toByteArray, out)
        case _: StringType => writeBytes(from.getUTF8String(i).getBytes, out)
        case BinaryType => writeBytes(from.getBinary(i), out)
        case CalendarIntervalType =>
          val interval = from.getInterval(i)
          out.writeInt(interval.months)
          out.writeInt(interval.days)
          out.writeLong(interval.microseconds)
        case VariantType =>
          writeBytes(from.getVariant(i).getValue, out)
          writeBytes(from.getVariant(i).getMetadata, out)
        case udt: UserDefinedType[_] => write(from, i, udt.sqlType, out)
        case ArrayType(element, _) =>
          val array = from.getArray(i)
          out.writeInt(array.numElements())
          (0 until array.numElements()).foreach(write(array, _, element, out))
        case MapType(key, value, _) =>
          val map = from.getMap(i)
          out.writeInt(map.numElements())
          (0 until map.numElements()).foreach { j =>
            write(map.keyArray(), j, key, out)
            write(map.valueArray(), j, value, out)
          }
        case s: StructType => writeStruct(from.getStruct(i, s.length), s, out)
      }
    }

  /** What only one of two multisets has, in words; None when they are the same. */
  def difference[T](expected: Seq[T], actual: Seq[T]): Option[String] = {
    val counts = mutable.HashMap.empty[T, Int]
    expected.foreach(row => counts(row) = counts.getOrElse(row, 0) + 1)
    actual.foreach(row => counts(row) = counts.getOrElse(row, 0) - 1)
    val missing = counts.collect { case (row, n) if n > 0 => row }
    val extra = counts.collect { case (row, n) if n < 0 => row }
    if (missing.isEmpty && extra.isEmpty) None
    else {
      Some(
        s"expected ${expected.length} rows, got ${actual.length}; ${missing.size} are missing: " +
          s"${missing.take(3).mkString(" ; ")}\n${extra.size} should not be there: " +
          extra.take(3).mkString(" ; ")
      )
    }
  }
}
