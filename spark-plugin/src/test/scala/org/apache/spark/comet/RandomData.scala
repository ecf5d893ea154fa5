package org.apache.spark.comet

import java.math.{BigDecimal, BigInteger}
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.types.variant.VariantBuilder
import org.apache.spark.unsafe.types.{CalendarInterval, UTF8String, VariantVal}

/** A user type over (x, y), to see user types as payload. */
class PointUDT extends UserDefinedType[(Double, Double)] {
  override def sqlType: DataType = StructType.fromDDL("x double, y double")
  override def serialize(p: (Double, Double)): Any = InternalRow(p._1, p._2)
  override def deserialize(datum: Any): (Double, Double) = datum match {
    case row: InternalRow => (row.getDouble(0), row.getDouble(1))
  }
  override def userClass: Class[(Double, Double)] = classOf[(Double, Double)]
}

/** Schemas and rows that follow from a seed alone, made to hit the rare bit patterns. */
class RandomData(seed: Long) {
  import RandomData._

  private val random = new Random(seed)

  private def oneOf[T](choices: Seq[T]): T = choices(random.nextInt(choices.length))

  private def decimalType(): DecimalType = {
    val precision = oneOf(Seq(1, 5, 9, 10, 18, 19, 20, 37, 38, 1 + random.nextInt(38)))
    DecimalType(precision, random.nextInt(precision + 1))
  }

  def dataType(depth: Int): DataType =
    if (depth == 0 || random.nextInt(3) > 0) {
      if (random.nextInt(8) == 0) decimalType() else oneOf(atomicTypes)
    } else {
      random.nextInt(3) match {
        case 0 => ArrayType(dataType(depth - 1), random.nextBoolean())
        case 1 => MapType(dataType(depth - 1), dataType(depth - 1), random.nextBoolean())
        case _ =>
          // Names may be equal, and a struct may have no fields at all.
          val fields = Seq.fill(random.nextInt(4)) {
            StructField(s"f${random.nextInt(3)}", dataType(depth - 1), random.nextBoolean())
          }
          StructType(fields)
      }
    }

  def schema(columns: Int): StructType = StructType(Seq.tabulate(columns) { i =>
    StructField(if (i % 5 == 4) "same" else s"c$i", dataType(4), random.nextInt(4) > 0)
  })

  private def string(): UTF8String = random.nextInt(12) match {
    case 0 => UTF8String.EMPTY_UTF8
    case 1 => UTF8String.fromBytes(binary(1 + random.nextInt(20))) // mostly invalid UTF-8
    case 2 => UTF8String.fromString(oneOf(Seq("\u0000", "é", "İI", "\uD83D\uDE00 face", "a  ")))
    case 3 if random.nextInt(60) == 0 => UTF8String.fromBytes(text(100 * 1024))
    case 3 => UTF8String.fromBytes(text(300))
    case _ => UTF8String.fromString(oneOf(words) + random.nextInt(20))
  }

  private def text(length: Int): Array[Byte] = {
    val builder = new StringBuilder
    while (builder.length < length) builder.append(oneOf(words)).append(' ')
    builder.toString.getBytes(UTF_8)
  }

  private def binary(length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    random.nextBytes(bytes)
    bytes
  }

  private def long(): Long = random.nextInt(5) match {
    case 0 => oneOf(Seq(0L, 1L, -1L, Long.MinValue, Long.MaxValue, Int.MinValue.toLong, 1L << 40))
    case 1 => random.nextLong()
    case _ => random.nextInt(2000).toLong - 1000
  }

  private def decimal(t: DecimalType): Decimal = {
    val limit = BigInteger.TEN.pow(t.precision)
    val unscaled = random.nextInt(5) match {
      case 0 => limit.subtract(BigInteger.ONE)
      case 1 => limit.subtract(BigInteger.ONE).negate()
      case 2 => BigInteger.ZERO
      case _ => new BigInteger(t.precision * 3, random.self).multiply(
          BigInteger.valueOf(oneOf(Seq(1L, -1L)))
        )
    }
    Decimal(new BigDecimal(unscaled.remainder(limit), t.scale), t.precision, t.scale)
  }

  private def float(): Float = random.nextInt(6) match {
    case 0 => java.lang.Float.intBitsToFloat(oneOf(floatBits))
    case _ => random.nextFloat() * 100
  }

  private def double(): Double = random.nextInt(6) match {
    case 0 => java.lang.Double.longBitsToDouble(oneOf(doubleBits))
    case _ => random.nextInt(1000) / 8.0
  }

  private def variant(): VariantVal = {
    val json = oneOf(Seq("1", "\"text\"", "{\"a\": [1, null, 2.5], \"b\": {\"c\": true}}", "null"))
    val built = VariantBuilder.parseJson(json, false)
    new VariantVal(built.getValue, built.getMetadata)
  }

  private def length(): Int = if (random.nextInt(50) == 0) 40 else random.nextInt(4)

  def value(t: DataType, nullable: Boolean): Any =
    if (t == NullType || nullable && random.nextInt(6) == 0) null
    else {
      t match {
        case BooleanType => random.nextBoolean()
        case ByteType => long().toByte
        case ShortType => long().toShort
        case IntegerType | DateType | _: YearMonthIntervalType => long().toInt
        case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => long()
        case _: TimeType => (random.nextDouble() * 86400000000000L).toLong
        case FloatType => float()
        case DoubleType => double()
        case d: DecimalType => decimal(d)
        case _: StringType => string()
        case BinaryType => binary(random.nextInt(12))
        case CalendarIntervalType =>
          new CalendarInterval(long().toInt, long().toInt, long())
        case VariantType => variant()
        case udt: UserDefinedType[_] => value(udt.sqlType, nullable = false)
        case ArrayType(element, containsNull) =>
          new GenericArrayData(Array.fill[Any](length())(value(element, containsNull)))
        case MapType(key, item, valueContainsNull) =>
          val entries = if (key == NullType) 0 else length()
          new ArrayBasedMapData(
            new GenericArrayData(Array.fill[Any](entries)(value(key, nullable = false))),
            new GenericArrayData(Array.fill[Any](entries)(value(item, valueContainsNull)))
          )
        case s: StructType => row(s)
      }
    }

  def row(schema: StructType): InternalRow =
    new GenericInternalRow(schema.fields.map(f => value(f.dataType, f.nullable)))

  /** Rows with a part of about 4 KB that compresses a little, so that few of them fill a pool. */
  def fat(schema: StructType): InternalRow = {
    val values = schema.fields.map(f => value(f.dataType, f.nullable))
    values(values.length - 1) = binary(1000) ++ text(2000 + random.nextInt(2000))
    new GenericInternalRow(values)
  }
}

object RandomData {
  val atomicTypes: Seq[DataType] = Seq(
    BooleanType,
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType(1, 0),
    DecimalType(18, 9),
    DecimalType(19, 0),
    DecimalType(38, 38),
    StringType,
    StringType("UTF8_LCASE"),
    StringType("UNICODE_CI"),
    BinaryType,
    DateType,
    TimestampType,
    TimestampNTZType,
    TimeType(6),
    YearMonthIntervalType(),
    DayTimeIntervalType(),
    CalendarIntervalType,
    VariantType,
    NullType,
    new PointUDT
  )

  private val words = Seq("comet", "shuffle", "Block", "ROW", "row", "Straße", "日本", "x")

  private val floatBits = Seq(
    0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fc12345, 0xffc00001, 0x7f812345,
    0x00000001
  )

  private val doubleBits = Seq(
    0L, 0x8000000000000000L, 0x7ff0000000000000L, 0xfff0000000000000L, 0x7ff8000000000000L,
    0x7ff8000012345678L, 0xfff8000000000001L, 0x7ff0000012345678L, 1L
  )

  /** One column of every atomic type, and the nested shapes that a random schema rarely has. */
  val everyType: StructType = {
    val nested = Seq(
      StructType(Nil),
      ArrayType(StructType(Nil)),
      ArrayType(NullType),
      MapType(StringType, ArrayType(DecimalType(38, 2))),
      ArrayType(MapType(IntegerType, StructType.fromDDL("a array<map<string, binary>>, b double"))),
      StructType.fromDDL("a struct<b struct<c struct<d string, e decimal(20,3)>>>, f boolean"),
      MapType(StructType.fromDDL("a int, b string"), VariantType),
      ArrayType(CalendarIntervalType),
      ArrayType(new PointUDT)
    )
    StructType((atomicTypes ++ nested).zipWithIndex.map { case (t, i) => StructField(s"c$i", t) })
  }

  def schemaOf(seed: Long): StructType = seed match {
    case 0 => everyType
    case 1 => StructType(Nil)
    case _ =>
      val data = new RandomData(seed)
      data.schema(1 + new Random(seed).nextInt(12))
  }

  /** A fat schema's last column is the payload of `fat`. */
  def fatSchemaOf(seed: Long): StructType = schemaOf(seed).add("fat", BinaryType, nullable = false)
}
