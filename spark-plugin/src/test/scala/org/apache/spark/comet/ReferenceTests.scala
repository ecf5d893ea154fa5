package org.apache.spark.comet

import scala.collection.mutable

import org.scalatest.BeforeAndAfterAll

import org.apache.spark.sql.classic.{DataFrame, SparkSession}

/** Suites whose queries run twice: first all of them in an application of Spark alone, then each in one with us. */
trait ReferenceTests extends CometTestBase with BeforeAndAfterAll {
  import CometTestBase._

  private case class Query(confs: Seq[(String, String)], query: SparkSession => DataFrame)

  /** What a query gave, and the metrics of its exchanges, in the order of the plan. */
  case class Result(rows: Seq[CanonicalRow.Bytes], metrics: Seq[Map[String, Long]])

  private val queries = mutable.LinkedHashMap.empty[String, Query]
  private val references = mutable.HashMap.empty[String, Result]
  private var comet: SparkSession = _

  /** The application with our plugin. */
  def session: SparkSession = comet

  private val isolated = Seq(Aqe -> "false", "spark.sql.autoBroadcastJoinThreshold" -> "-1")

  private def run(session: SparkSession, query: Query): (DataFrame, Result) = {
    val df = query.query(session)
    val rows = placedRows(df).map(_._2)
    val metrics = exchanges(df.queryExecution.executedPlan).map { exchange =>
      exchange.metrics.map { case (key, metric) => key -> metric.value }
    }
    (df, Result(rows, metrics))
  }

  /** Runs the query with both and compares answers; `check` looks at ours, and at what Spark's metrics were. */
  def compared(name: String, confs: (String, String)*)(query: SparkSession => DataFrame)(
      check: (DataFrame, Result) => Unit
  ): Unit = {
    queries(name) = Query(isolated ++ confs, query)
    test(name) {
      withSqlConf(comet, isolated ++ confs: _*) {
        val (df, result) = run(comet, queries(name))
        assertSame(references(name).rows, result.rows)
        check(df, references(name))
      }
      assertNothingLeft()
    }
  }

  /** Tables and views that the queries use. */
  def prepare(session: SparkSession): Unit = {
    session.range(0, 20000, 1, 4)
      .selectExpr("id", "id % 97 as k", "cast(id % 1000 as string) as s", "id * 1.5 as d")
      .createOrReplaceTempView("facts")
    session.range(0, 97, 1, 2).selectExpr("id as k", "concat('name ', id) as name")
      .createOrReplaceTempView("names")
    // Most of these rows have one key.
    session.range(0, 60000, 1, 4)
      .selectExpr("if(id % 10 < 9, 7, id % 97) as k", "uuid_like(id) as payload")
      .createOrReplaceTempView("skewed")
  }

  /** Options of the application besides those of the plugin. */
  def applicationConfs: Seq[(String, String)] = Nil

  private def startAndPrepare(confs: Seq[(String, String)]): SparkSession = {
    val session = start(confs ++ applicationConfs: _*)
    session.udf.register("uuid_like", (id: Long) => f"${id * 0x9e3779b97f4a7c15L}%016x")
    prepare(session)
    session
  }

  override def beforeAll(): Unit = {
    super.beforeAll()
    val spark = startAndPrepare(Nil)
    try
      queries.foreach { case (name, query) =>
        references(name) = withSqlConf(spark, query.confs: _*)(run(spark, query)._2)
      }
    finally stop(spark)
    comet = startAndPrepare(pluginConfs)
  }

  override def afterAll(): Unit =
    try stop(comet)
    finally super.afterAll()
}
