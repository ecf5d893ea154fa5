package org.apache.spark.comet

import org.scalatest.BeforeAndAfterAll

import org.apache.spark.comet.sql.CometColumnarToRowExec
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.plans.logical.Repartition
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.{ColumnarToRowExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.types._

/** Rows that are made of our batches in native code, against those of Spark's `ColumnarToRowExec`. */
class ColumnarToRowSuite extends CometTestBase with BeforeAndAfterAll {
  import CometTestBase._

  private val Enabled = "spark.comet.columnarToRow.enabled"
  private val noBroadcast = "spark.sql.autoBroadcastJoinThreshold" -> "-1"
  private var session: SparkSession = _

  override def beforeAll(): Unit = {
    session = start(pluginConfs :+ noBroadcast: _*)
    session.range(0, 5000, 1, 3).selectExpr(
      "id",
      "id % 100 as k",
      "cast(id as string) as s",
      "cast(id as decimal(30, 3)) as d",
      "if(id % 7 = 0, null, id) as n"
    ).createOrReplaceTempView("facts")
  }

  override def afterAll(): Unit = stop(session)

  private def native(plan: SparkPlan): Seq[SparkPlan] =
    collectWithSubqueries(plan) { case c: CometColumnarToRowExec => c }

  private def sparks(plan: SparkPlan): Seq[SparkPlan] =
    collectWithSubqueries(plan) { case c: ColumnarToRowExec => c }

  /** The query, run, natively or not. */
  private def run(query: String, enabled: Boolean): (DataFrame, Seq[String]) =
    withSqlConf(session, Enabled -> enabled.toString) {
      val df = session.sql(query)
      (df, df.collect().map(_.toString).toSeq)
    }

  private val wholeRows = Seq(
    "sort" -> ("select * from facts order by s", 1),
    "partition for its own sake" -> ("select /*+ repartition(5, k) */ * from facts", 1),
    "sort merge join" -> (
      "select /*+ merge(b) */ a.s, b.d from facts a join facts b on a.id = b.n",
      2
    ),
    "shuffled hash join" -> (
      "select /*+ shuffle_hash(b) */ a.s, b.d from facts a join facts b on a.id = b.n",
      2
    ),
    "union" -> (
      "select /*+ repartition(5, k) */ * from facts union all select /*+ repartition(5) */ * from facts",
      1
    ),
    "window" -> ("select s, row_number() over (partition by k order by id) from facts", 1)
  )

  private val columns = Seq(
    "aggregate" -> "select k, sum(d), count(n) from facts group by k",
    "projection" -> "select k + 1, s from (select /*+ repartition(5) */ * from facts where rand(1) < 2)",
    "no column" -> "select count(*) from (select /*+ repartition(5) */ 1 from facts)"
  )

  for (adaptive <- Seq("true", "false")) {
    for ((name, (query, count)) <- wholeRows)
      test(s"whole rows: $name, adaptive execution $adaptive") {
        withSqlConf(session, Aqe -> adaptive) {
          val (df, rows) = run(query, enabled = true)
          val (reference, expected) = run(query, enabled = false)
          assertSame(expected, rows)
          val plan = df.queryExecution.executedPlan
          assert(native(plan).length === count, plan)
          assert(native(reference.queryExecution.executedPlan) === Nil)
          val theirs = sparks(reference.queryExecution.executedPlan)
          assert(theirs.length === sparks(plan).length + count)
          def metrics(nodes: Seq[SparkPlan]) = nodes.map { node =>
            node.metrics.map { case (key, metric) => key -> (metric.name, metric.value) }
          }
          assertSame(metrics(theirs), metrics(sparks(plan) ++ native(plan)))
          assert(native(plan).forall(_.metrics("numOutputRows").value > 0))
        }
      }

    for ((name, query) <- columns)
      test(s"single columns stay with Spark: $name, adaptive execution $adaptive") {
        withSqlConf(session, Aqe -> adaptive) {
          val (df, _) = run(query, enabled = true)
          val plan = df.queryExecution.executedPlan
          assertComet(df)
          assert(sparks(plan).nonEmpty, plan)
        }
      }
  }

  test("an aggregate takes whole rows where no code is generated") {
    val query = "select k, sum(d), count(n) from facts group by k"
    for (
      conf <- Seq("spark.sql.codegen.wholeStage" -> "false", "spark.sql.codegen.maxFields" -> "2")
    )
      withSqlConf(session, Aqe -> "false", conf) {
        val (df, rows) = run(query, enabled = true)
        assert(native(df.queryExecution.executedPlan).length === 1)
        assertSame(run(query, enabled = false)._2, rows)
      }
  }

  test("a value that cannot be taken fails no query") {
    withSqlConf(session, Enabled -> "perhaps") {
      val df = session.sql("select * from facts order by s")
      assert(df.collect().length === 5000)
      assertNotComet(df)
    }
  }

  test("rows of a cached table, and of a reused exchange") {
    val query = "select * from facts distribute by k"
    withSqlConf(session, Aqe -> "false") {
      val cached = session.sql(query).cache()
      try assert(cached.selectExpr("sum(id)").collect().head.getLong(0) === 4999L * 2500)
      finally cached.unpersist(blocking = true)
      val both = session.sql(s"select * from ($query) union all select * from ($query)")
      assert(both.collect().length === 10000)
      val plan = both.queryExecution.executedPlan
      assert(native(plan).length === 1 && sparks(plan) === Nil, plan)
      assert(collect(plan) { case reused: ReusedExchangeExec => reused }.length === 1)
    }
  }

  /** Bytes of the rows, as they are. */
  private def bytes(df: DataFrame): Seq[Seq[Byte]] =
    df.queryExecution.toRdd.map { case row: UnsafeRow => row.getBytes.toSeq }.collect().toSeq

  for (seed <- 0L until 12L)
    test(s"the very bytes of Spark's rows, seed $seed") {
      withSqlConf(session, Aqe -> "false") {
        // Spark doesn't clear the place of a null interval, and marks no nulls in arrays without any.
        val schema = StructType(RandomData.schemaOf(seed).filterNot {
          _.dataType.existsRecursively {
            case CalendarIntervalType | ArrayType(NullType, false) => true
            case MapType(_, NullType, false) => true
            case _ => false
          }
        })
        val fat = seed % 3 == 2 && schema.nonEmpty
        def made(enabled: Boolean) = withSqlConf(session, Enabled -> enabled.toString) {
          val input = if (fat) schema.add("fat", BinaryType, nullable = false) else schema
          val rows = randomRows(session, seed, input, partitions = 5, rows = 150, fat)
          val shuffled = dataFrame(
            session,
            Repartition(3, shuffle = true, rows.queryExecution.analyzed)
          )
          val expected = if (enabled && input.nonEmpty) 1 else 0
          assert(native(shuffled.queryExecution.executedPlan).length === expected)
          bytes(shuffled)
        }
        assertSame(made(enabled = false), made(enabled = true))
      }
    }
}

/** The same where memory is short. */
class ColumnarToRowMemorySuite extends CometTestBase {
  import CometTestBase._

  test("rows larger than a piece, in a memory that denies") {
    withComet(OffHeapSize -> "6m", "spark.buffer.pageSize" -> "256k", Aqe -> "false") { session =>
      val rows = session.range(0, 40, 1, 2).selectExpr("id", "repeat('x', 400000 + id) as text")
      val sorted = rows.repartition(3).sortWithinPartitions("id")
      val read = sorted.collect().map(row => row.getLong(0) -> row.getString(1).length).toSeq
      assertSame((0L until 40L).map(id => id -> (400000 + id.toInt)), read)
      val transitions = collect(sorted.queryExecution.executedPlan) {
        case c: CometColumnarToRowExec => c.metrics("numOutputRows").value
      }
      assert(transitions === Seq(40))
      assert(assertComet(sorted).map(_.metrics("spillCount").value).sum > 0)
    }
  }

  test("a task that stops early, or fails, above native rows") {
    withComet(OffHeapSize -> "64m", Aqe -> "false") { session =>
      val rows = session.range(0, 20000, 1, 2).selectExpr("id", "repeat('x', 100) as text")
      val exchanged = rows.repartition(3)
      assert(exchanged.limit(7).collect().length === 7)
      val failure = intercept[Exception](exchanged.rdd.foreach { row =>
        if (row.getLong(0) == 15000) throw new IllegalStateException("on purpose")
      })
      assert(failure.getMessage.contains("on purpose"))
      assertNothingLeft()
      assert(exchanged.queryExecution.toRdd.count() === 20000)
    }
  }
}
