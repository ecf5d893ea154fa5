package org.apache.spark.comet

import scala.collection.mutable

import org.scalatest.BeforeAndAfterAll

import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  Expression,
  Literal,
  RowOrdering,
  SortOrder,
  WindowExpression,
  WindowSpecDefinition
}
import org.apache.spark.sql.catalyst.expressions.{
  Ascending,
  Descending,
  NullsFirst,
  NullsLast,
  RowFrame,
  SpecifiedWindowFrame,
  UnboundedPreceding
}
import org.apache.spark.sql.catalyst.expressions.aggregate.Count
import org.apache.spark.sql.catalyst.plans.logical.{
  LogicalPlan,
  Repartition,
  RepartitionByExpression,
  Window
}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types._

import scala.util.Random

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
    case _: MapType => true // Spark sorts these first: a query of its own below.
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
      case "single" =>
        // Whatever the order of rows, each gets the number of all rows.
        val frame = SpecifiedWindowFrame(
          RowFrame,
          UnboundedPreceding,
          org.apache.spark.sql.catalyst.expressions.UnboundedFollowing
        )
        val count: Expression = WindowExpression(
          Count(Literal(1)).toAggregateExpression(),
          WindowSpecDefinition(Nil, Nil, frame)
        )
        Some(Window(Seq(Alias(count, "count")()), Nil, Nil, child))
    }
  }

  private val shapes = Seq("round robin", "hash", "range", "single")

  private def results(session: SparkSession, fat: Boolean, aqe: Boolean)(
      use: (DataFrame, String, Placed) => Unit
  ): Unit =
    withSqlConf(session, Aqe -> aqe.toString) {
      for (seed <- if (fat) fatSeeds else seeds; shape <- shapes) {
        val schema = if (fat) RandomData.fatSchemaOf(seed) else RandomData.schemaOf(seed)
        val rows = if (fat) 1200 else 150
        val df = randomRows(session, seed, schema, partitions = 5, rows, fat)
        query(df, shape, seed).foreach { plan =>
          val shuffled = dataFrame(session, plan)
          withClue(s"seed $seed, fat $fat, $shape, aqe $aqe, schema $schema: ") {
            use(shuffled, s"$seed/$fat/$shape", placedRows(shuffled))
          }
        }
      }
    }

  private val reference = mutable.HashMap.empty[String, Placed]

  override def beforeAll(): Unit = withSpark() { session =>
    for (fat <- Seq(false, true))
      results(session, fat, aqe = false)((_, key, rows) => reference(key) = rows)
  }

  private def compare(session: SparkSession, fat: Boolean, aqe: Boolean)(
      spills: Long => Unit
  ): Unit = {
    var spilled = 0L
    results(session, fat, aqe) { (df, key, rows) =>
      val ours = assertComet(df)
      val expected = reference(key)
      val shape = key.split('/').last
      if (placed(shape) && !aqe) assertSame(expected, rows)
      else assertSame(expected.map(_._2), rows.map(_._2))
      spilled += ours.map(_.metrics("spillCount").value).sum
      assert(ours.map(_.metrics("shuffleRecordsWritten").value).sum === expected.length)
    }
    spills(spilled)
  }

  for (codec <- codecs; aqe <- Seq(false, true)) {
    test(s"in memory, $codec, AQE $aqe") {
      withComet(Codec -> codec) { session =>
        compare(session, fat = false, aqe)(spills => assert(spills === 0))
      }
    }

    test(s"forced spill, $codec, AQE $aqe") {
      withComet(Codec -> codec, OffHeapSize -> "6m", "spark.buffer.pageSize" -> "256k") { session =>
        compare(session, fat = true, aqe)(spills => assert(spills > 0))
      }
    }
  }
}
