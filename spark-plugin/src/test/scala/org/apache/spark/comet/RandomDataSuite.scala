package org.apache.spark.comet

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._

/** The helpers that other suites rely on, tried without our shuffle. */
class RandomDataSuite extends CometTestBase {
  import CometTestBase._

  test("rows follow from the seed, and survive as UnsafeRows to the last bit") {
    for (seed <- 0L until 40L) {
      val schema = RandomData.schemaOf(seed)
      withClue(s"seed $seed, schema $schema: ") {
        assert(schema === RandomData.schemaOf(seed))
        val toUnsafe = UnsafeProjection.create(schema)
        val (one, two) = (new RandomData(seed), new RandomData(seed))
        for (_ <- 0 until 30) {
          val row = one.row(schema)
          val bytes = CanonicalRow.bytes(row, schema)
          assert(bytes === CanonicalRow.bytes(two.row(schema), schema))
          assert(bytes === CanonicalRow.bytes(toUnsafe(row), schema))
        }
      }
    }
  }

  test("seeds cover every type") {
    val seen = (0L until 5L).map(RandomData.schemaOf)
    RandomData.atomicTypes.foreach { t =>
      assert(seen.exists(_.existsRecursively(_ == t)), t)
    }
  }

  test("the canonical form tells bits apart") {
    def bytes(t: DataType, value: Any): CanonicalRow.Bytes =
      CanonicalRow.bytes(new GenericInternalRow(Array[Any](value)), new StructType().add("a", t))
    assert(bytes(DoubleType, 0.0) !== bytes(DoubleType, -0.0))
    val nan = java.lang.Double.longBitsToDouble(0x7ff8000000000001L)
    assert(bytes(DoubleType, nan) !== bytes(DoubleType, Double.NaN))
    assert(bytes(IntegerType, null) !== bytes(IntegerType, 0))
    val ints = ArrayType(IntegerType)
    assert(bytes(ints, new GenericArrayData(Array[Any](1, null))) !==
      bytes(ints, new GenericArrayData(Array[Any](1))))
    assert(bytes(BinaryType, new Array[Byte](1000)) !== bytes(BinaryType, new Array[Byte](1001)))
    assert(CanonicalRow.difference(Seq(1, 1, 2), Seq(2, 1)).isDefined)
    assert(CanonicalRow.difference(Seq(1, 1, 2), Seq(2, 1, 1)).isEmpty)
  }

  test("random rows give the same answer twice from Spark's shuffle") {
    withSpark() { session =>
      for (seed <- 0L until 3L) {
        val df = randomRows(session, seed, RandomData.schemaOf(seed), 3, 50, fat = false)
        val all = Seq(false, true).map { aqe =>
          withSqlConf(session, Aqe -> aqe.toString)(placedRows(df.repartition(4)))
        }
        assert(all.head.length === 150)
        assertSame(all.head.map(_._2), all.last.map(_._2))
        assertSame(placedRows(df).map(_._2), all.last.map(_._2))
      }
    }
  }
}
