package org.apache.spark.comet

import scala.collection.mutable
import scala.util.Random

import org.scalatest.BeforeAndAfterAll

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.Count
import org.apache.spark.sql.catalyst.plans.logical.{
  LogicalPlan,
  Repartition,
  RepartitionByExpression,
  Window
}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.{DataType, MapType, VariantType}

/** The same rows through Spark's shuffle and through ours. */
class ShuffleComparisonSuite extends CometTestBase with BeforeAndAfterAll {
  import CometTestBase._

  private type Placed = Seq[(Int, CanonicalRow.Bytes)]

  private val partitions = 7
  private val seeds = 0L until 5L
  private val fatSeeds = Seq(0L, 2L)
  private val codecs = Seq("none", "lz4", "zstd", "snappy")

  /** Which rows of the reference must be in the very same partition. */
  private val placed = Set("hash", "range", "single")

  private def keys(seed: Long, candidates: Seq[Attribute]): Seq[Attribute] = {
    val shuffled = new Random(seed).shuffle(candidates)
    shuffled.take(1 + new Random(seed).nextInt(3))
  }

  private def hashable(t: DataType): Boolean = !t.existsRecursively {
    case VariantType => true
    case MapType(key, _, _) => !RowOrdering.isOrderable(key) // Spark sorts maps before it hashes.
    case _ => false
  }

  /** The query for a way of partitioning; None where the schema has no fitting key. */
  private def query(df: DataFrame, shape: String, seed: Long): Option[LogicalPlan] = {
    val child = df.queryExecution.analyzed
    val output = child.output
    shape match {
      case "round robin" => Some(Repartition(partitions, shuffle = true, child))
      case "hash" =>
        val found = keys(seed, output.filter(a => hashable(a.dataType)))
        if (found.isEmpty) None
        else Some(RepartitionByExpression(found, child, Some(partitions)))
      case "range" =>
        val found = keys(seed, output.filter(a => RowOrdering.isOrderable(a.dataType)))
        val orders = found.zipWithIndex.map { case (a, i) =>
          if (i % 2 == 0) SortOrder(a, Ascending, NullsFirst, Nil)
          else SortOrder(a, Descending, NullsLast, Nil)
        }
        if (found.isEmpty) None
        else Some(RepartitionByExpression(orders, child, Some(partitions)))
      case "single" => Some(Repartition(1, shuffle = true, child))
      case "window" =>
        // Whatever the order of rows, each gets the number of all rows.
        val frame = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, UnboundedFollowing)
        val count: Expression = WindowExpression(
          Count(Literal(1)).toAggregateExpression(),
          WindowSpecDefinition(Nil, Nil, frame)
        )
        Some(Window(Seq(Alias(count, "count")()), Nil, Nil, child))
    }
  }

  private val shapes = Seq("round robin", "hash", "range", "single", "window")

  private def results(session: SparkSession, fat: Boolean, aqe: Boolean, shapes: Seq[String])(
      use: (DataFrame, String, Placed) => Unit
  ): Unit =
    withSqlConf(session, Aqe -> aqe.toString) {
      for (seed <- if (fat) fatSeeds else seeds; shape <- shapes) {
        val schema = if (fat) RandomData.fatSchemaOf(seed) else RandomData.schemaOf(seed)
        val rows = if (fat) 1200 else 150
        val df = randomRows(session, seed, schema, partitions = 5, rows, fat)
        query(df, shape, seed).foreach { plan =>
          val shuffled = dataFrame(session, plan)
          withClue(s"seed $seed, fat $fat, $shape, aqe $aqe, schema ${schema.simpleString}: ") {
            use(shuffled, s"$seed/$fat/$shape", placedRows(shuffled))
          }
        }
      }
    }

  private val reference = mutable.HashMap.empty[String, Placed]

  // Every row is sampled, so that the bounds of ranges don't depend on the number of the RDD.
  private val sampling = "spark.sql.execution.rangeExchange.sampleSizePerPartition" -> "5000"

  private val smallMemory = Seq(OffHeapSize -> "6m", "spark.buffer.pageSize" -> "256k")

  override def beforeAll(): Unit = {
    withSpark(sampling) { session =>
      results(session, fat = false, aqe = false, shapes)((_, key, rows) => reference(key) = rows)
    }
    withSpark(offHeapConfs ++ smallMemory :+ sampling: _*) { session =>
      results(session, fat = true, aqe = false, shapes)((_, key, rows) => reference(key) = rows)
    }
  }

  /** Compares with the reference, and returns the number of spills. */
  private def compare(
      session: SparkSession,
      fat: Boolean,
      aqe: Boolean,
      shapes: Seq[String]
  ): Long = {
    var spilled = 0L
    results(session, fat, aqe, shapes) { (df, key, rows) =>
      val ours = assertComet(df)
      val expected = reference(key)
      val shape = key.split('/').last
      if (placed(shape) && !aqe) assertSame(expected, rows)
      else assertSame(expected.map(_._2), rows.map(_._2))
      spilled += ours.map(_.metrics("spillCount").value).sum
      assert(ours.map(_.metrics("shuffleRecordsWritten").value).sum === expected.length)
    }
    spilled
  }

  for (codec <- codecs; aqe <- Seq(false, true)) {
    test(s"in memory, $codec, AQE $aqe") {
      withComet(Codec -> codec, sampling) { session =>
        assert(compare(session, fat = false, aqe, shapes) === 0)
      }
    }

    test(s"forced spill, $codec, AQE $aqe") {
      withComet(smallMemory :+ sampling :+ (Codec -> codec): _*) { session =>
        assert(compare(session, fat = true, aqe, shapes.filter(_ != "window")) > 0)
      }
    }
  }

  test("the reader leaves memory to the operators above it, in a pool that is enough for Spark") {
    withComet(smallMemory :+ sampling: _*) { session =>
      compare(session, fat = true, aqe = false, Seq("window"))
    }
  }
}
