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
import org.apache.spark.sql.types.{DataType, MapType, StructType, VariantType}

/** The same rows through Spark's shuffle and through ours. */
trait ShuffleComparison extends CometTestBase with BeforeAndAfterAll {
  import CometTestBase._

  /** What stands below the exchange. */
  def source(df: DataFrame): LogicalPlan

  /** The columns that there can be. */
  def supports(dataType: DataType): Boolean

  /** The writer that must take an exchange of this shape. */
  def writer(shape: String): String

  /** Options of the applications. */
  def confs: Seq[(String, String)] = Nil

  def prepare(session: SparkSession): Unit = {}

  private type Placed = Seq[(Int, CanonicalRow.Bytes)]

  protected def partitions: Int = 10
  protected def seeds: Seq[Long] = 0L until 5L
  protected val fatSeeds = Seq(0L, 2L)
  protected def codecs: Seq[String] = Seq("none", "lz4", "zstd", "snappy")

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
    val child = source(df)
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

  protected def shapes: Seq[String] = Seq("round robin", "hash", "range", "single", "window")

  private def results(session: SparkSession, fat: Boolean, aqe: Boolean, shapes: Seq[String])(
      use: (DataFrame, String, Placed) => Unit
  ): Unit =
    withSqlConf(session, Aqe -> aqe.toString) {
      for (seed <- if (fat) fatSeeds else seeds; shape <- shapes) {
        val all = if (fat) RandomData.fatSchemaOf(seed) else RandomData.schemaOf(seed)
        val schema = StructType(all.filter(field => supports(field.dataType)))
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
  protected val sampling = "spark.sql.execution.rangeExchange.sampleSizePerPartition" -> "5000"

  protected val smallMemory = Seq(OffHeapSize -> "6m", "spark.buffer.pageSize" -> "256k")

  override def beforeAll(): Unit = {
    withSpark(confs :+ sampling: _*) { session =>
      prepare(session)
      results(session, fat = false, aqe = false, shapes)((_, key, rows) => reference(key) = rows)
    }
    withSpark(offHeapConfs ++ smallMemory ++ confs :+ sampling: _*) { session =>
      prepare(session)
      results(session, fat = true, aqe = false, shapes)((_, key, rows) => reference(key) = rows)
    }
  }

  /** Compares with the reference, and returns the number of spills. */
  protected def compare(
      session: SparkSession,
      fat: Boolean,
      aqe: Boolean,
      shapes: Seq[String]
  ): Long = {
    var spilled = 0L
    prepare(session)
    results(session, fat, aqe, shapes) { (df, key, rows) =>
      val ours = assertComet(df)
      val expected = reference(key)
      val shape = key.split('/').last
      assert(ours.head.nodeName === s"CometShuffleExchange(${writer(shape)})")
      if (placed(shape) && !aqe) assertSame(expected, rows)
      else assertSame(expected.map(_._2), rows.map(_._2))
      spilled += ours.map(_.metrics("spillCount").value).sum
      assert(ours.head.metrics("shuffleRecordsWritten").value === expected.length)
    }
    spilled
  }
}
