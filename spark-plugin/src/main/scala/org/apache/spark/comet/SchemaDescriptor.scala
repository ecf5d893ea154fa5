package org.apache.spark.comet

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.charset.StandardCharsets

import org.apache.spark.sql.types._

/** The row type in the form that the native side reads. Little-endian: `u32 field count`, then for each field
  * `u16 length of the name, name, type`; a type is a tag and its parameters (see `native/row/src/schema.rs`).
  */
object SchemaDescriptor {

  // As in native/row.
  private val MaxDepth = 128

  /** Bytes of `schema`; every type in it must be supported. */
  def encode(schema: StructType): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    writeFields(new DataOutputStream(bytes), schema)
    bytes.toByteArray
  }

  /** Why `dataType` cannot be carried in our blocks, if it can't. */
  def unsupportedReason(dataType: DataType): Option[String] = unsupportedReason(dataType, 0)

  private def unsupportedReason(dataType: DataType, depth: Int): Option[String] = dataType match {
    case _ if depth > MaxDepth => Some(s"types nest deeper than $MaxDepth levels")
    case udt: UserDefinedType[_] => unsupportedReason(udt.sqlType, depth)
    case struct: StructType =>
      struct.fields.iterator.flatMap(f => unsupportedReason(f.dataType, depth + 1)).nextOption()
    case ArrayType(element, _) => unsupportedReason(element, depth + 1)
    case MapType(key, value, _) =>
      unsupportedReason(key, depth + 1).orElse(unsupportedReason(value, depth + 1))
    // Spark has decimals without digits, and with spark.sql.legacy.allowNegativeScaleOfDecimal very large ones.
    case decimal: DecimalType if decimal.precision < 1 || decimal.scale < Byte.MinValue =>
      Some(s"type ${decimal.catalogString} is not supported")
    case other if tag(other).isDefined => None
    case other => Some(s"type ${other.catalogString} is not supported")
  }

  private def tag(dataType: DataType): Option[Int] = dataType match {
    case NullType => Some(0)
    case BooleanType => Some(1)
    case ByteType => Some(2)
    case ShortType => Some(3)
    case IntegerType => Some(4)
    case LongType => Some(5)
    case FloatType => Some(6)
    case DoubleType => Some(7)
    case _: DecimalType => Some(8)
    case _: StringType => Some(9)
    case BinaryType => Some(10)
    case DateType => Some(11)
    case TimestampType => Some(12)
    case TimestampNTZType => Some(13)
    case _: TimeType => Some(14)
    case _: YearMonthIntervalType => Some(15)
    case _: DayTimeIntervalType => Some(16)
    case CalendarIntervalType => Some(17)
    case VariantType => Some(18)
    case _: StructType => Some(19)
    case _: ArrayType => Some(20)
    case _: MapType => Some(21)
    case _ => None
  }

  private def writeFields(out: DataOutputStream, struct: StructType): Unit = {
    out.writeInt(Integer.reverseBytes(struct.length))
    struct.fields.foreach { field =>
      // Names are for readers of the block; the longest that fits is enough.
      val name = field.name.getBytes(StandardCharsets.UTF_8)
      val whole = if (name.length <= 0xffff) name else "column".getBytes(StandardCharsets.UTF_8)
      out.writeShort(java.lang.Short.reverseBytes(whole.length.toShort))
      out.write(whole)
      writeType(out, field.dataType)
    }
  }

  private def writeType(out: DataOutputStream, dataType: DataType): Unit = dataType match {
    case udt: UserDefinedType[_] => writeType(out, udt.sqlType)
    case _ =>
      out.writeByte(tag(dataType).getOrElse(
        throw new IllegalArgumentException(s"Unsupported type $dataType")
      ))
      dataType match {
        case decimal: DecimalType =>
          out.writeByte(decimal.precision)
          out.writeByte(decimal.scale)
        case struct: StructType => writeFields(out, struct)
        case ArrayType(element, _) => writeType(out, element)
        case MapType(key, value, _) =>
          writeType(out, key)
          writeType(out, value)
        case _ =>
      }
  }
}
