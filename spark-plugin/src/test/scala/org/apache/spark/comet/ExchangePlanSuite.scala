package org.apache.spark.comet

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{ExplainMode, SimpleMode}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.storage.StorageLevel

/** Our exchange in plans of all kinds. */
class ExchangePlanSuite extends ReferenceTests {
  import CometTestBase._

  private def explained(query: String, mode: String): String = {
    val df = session.sql(query)
    df.queryExecution.explainString(ExplainMode.fromString(mode))
  }

  test("explain names the exchange") {
    for (on <- Seq("true", "false"); mode <- Seq("simple", "extended", "formatted"))
      withSqlConf(session, Aqe -> on) {
        val text = explained("select k, count(*) from facts group by k", mode)
        withClue(s"AQE $on, $mode: $text") {
          assert(text.contains("CometShuffleExchange"))
          assert(text.contains("hashpartitioning(k"))
          assert(!text.contains("RowToColumnar"))
          assert(text.contains("1 of 1 shuffle exchanges are Comet's"))
        }
      }
  }

  test("explain and the log say why an exchange stays with Spark") {
    val many = "spark.sql.shuffle.partitions" -> "16777217"
    val path = temporaryFolder().toString
    session.table("facts").write.mode("overwrite").parquet(path)
    for (
      on <- Seq("true", "false");
      mode <- Seq("simple", "formatted");
      query <- Seq(
        "select k, count(*) from facts group by k",
        s"select /*+ repartition(k) */ k from parquet.`$path`"
      )
    )
      withSqlConf(session, Aqe -> on, many, "spark.comet.explain.fallback.enabled" -> "true") {
        val (text, log) = captureLog("org.apache.spark.comet")(explained(query, mode))
        withClue(s"AQE $on, $mode: $text") {
          assert(text.contains("== Extended Information (Comet Shuffle) =="))
          assert(
            text.contains("16777217 partitions are more than the 16777216 that there may be")
          )
          assert(!text.contains("CometShuffleExchange"))
        }
        assert(LogCapture.messages(log).count(_.contains("16777217 partitions")) === 1)
      }
    withSqlConf(session, many) {
      val (_, log) = captureLog("org.apache.spark.comet") {
        explained("select k, count(*) from facts group by k", "simple")
      }
      assert(log === Nil)
    }
  }

  for (
    (name, column, reason) <- Seq(
      ("no digits", "cast(null as decimal(0,0))", "type decimal(0,0) is not supported"),
      (
        "130 levels",
        "array(" * 130 + "id" + ")" * 130,
        "types nest deeper than 128 levels"
      )
    )
  )
    compared(s"types that our blocks do not have: $name")(
      _.range(100).selectExpr("id", s"$column as c").repartition(4)
    ) { (df, _) =>
      assertNotComet(df)
      assert(df.queryExecution.explainString(SimpleMode).contains(s"column c: $reason"))
    }

  private val sameMetrics = Seq("dataSize", "numPartitions", "shuffleRecordsWritten", "recordsRead")

  for (
    (name, query) <- Seq(
      "group by" -> "select k, count(*), sum(d) from facts group by k",
      "sort" -> "select * from facts order by s, id",
      "distinct" -> "select distinct s, k from facts",
      "join" -> "select f.id, n.name from facts f join names n on f.k = n.k",
      "window" -> "select id, count(*) over (partition by k) from facts",
      "global aggregate" -> "select count(*), min(s), max(d) from facts",
      "round robin" -> "select /*+ repartition(5) */ * from facts",
      "no columns" -> "select count(*) from (select /*+ repartition(5) */ 1 from facts)"
    )
  )
    compared(s"metrics are Spark's: $name")(_.sql(query)) { (df, reference) =>
      val ours = assertComet(df)
      assert(ours.length === reference.metrics.length)
      ours.zip(reference.metrics).foreach { case (exchange, theirs) =>
        sameMetrics.foreach { key =>
          assert(exchange.metrics(key).value === theirs(key), s"$key of $exchange")
        }
        assert(exchange.metrics("shuffleBytesWritten").value > 0)
        assert(exchange.metrics("spillCount").value === 0)
        assert(exchange.metrics("blocksWritten").value > 0)
        assert(exchange.metrics("localBytesRead").value ===
          exchange.metrics("shuffleBytesWritten").value)
      }
    }

  // Which exchange is ours is decided while planning, so two plans are put together.
  test("rows go to the partitions that Spark's exchange sends them to") {
    withSqlConf(session, Aqe -> "false") {
      val query = "select /*+ repartition(6, s, d) */ id, s, d from facts"
      val ours = session.sql(query)
      assertComet(ours)
      val theirs = session.sql(query)
      withSqlConf(session, "spark.comet.shuffle.enabled" -> "false")(assertNotComet(theirs))
      val ids = (one: InternalRow, two: InternalRow) => one.getLong(0) == two.getLong(0)
      val sorted = Seq(ours, theirs).map { df =>
        df.queryExecution.toRdd.mapPartitions(_.map(_.copy()).toArray.sortBy(_.getLong(0)).iterator)
      }
      val equal = sorted.head.zipPartitions(sorted.last) { (one, two) =>
        val (a, b) = (one.toSeq, two.toSeq)
        Iterator(a.length == b.length && a.nonEmpty && a.zip(b).forall(p => ids(p._1, p._2)))
      }
      assert(equal.collect().toSeq === Seq.fill(6)(true))
    }
  }

  compared("subqueries", Aqe -> "true")(
    _.sql("select k, count(*) from facts where d > (select avg(d) from facts) and " +
      "k in (select k from names where name like '%1%') group by k")
  )((df, _) => assertComet(df))

  test("dynamic partition pruning") {
    val path = temporaryFolder().toString
    session.table("facts").write.mode("overwrite").partitionBy("k").parquet(path)
    session.read.parquet(path).createOrReplaceTempView("partitioned")
    for (on <- Seq("true", "false"))
      withSqlConf(session, Aqe -> on, "spark.sql.autoBroadcastJoinThreshold" -> "10m") {
        val df = session.sql(
          "select p.k, count(*) c from partitioned p join names n on p.k = n.k " +
            "where n.name in ('name 5', 'name 6') group by p.k order by p.k"
        )
        assert(df.collect().map(r => (r.getInt(0), r.getLong(1))).toSeq === Seq((5, 207), (6, 207)))
        assert(df.queryExecution.executedPlan.toString.contains("dynamicpruning"))
        assertComet(df)
      }
  }

  test("a streaming aggregation") {
    val spark = session
    import spark.implicits._
    val input = MemoryStream[Int](implicitly[org.apache.spark.sql.Encoder[Int]], spark)
    val query = input.toDF().groupBy(($"value" % 5).as("k")).count()
      .writeStream.format("memory").queryName("streamed").outputMode("complete").start()
    try {
      input.addData(0 until 100)
      query.processAllAvailable()
      input.addData(0 until 50)
      query.processAllAvailable()
      assert(session.table("streamed").orderBy("k").collect().map(_.getLong(1)).toSeq ===
        Seq.fill(5)(30L))
      val last = query.asInstanceOf[
        org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
      ].streamingQuery.lastExecution
      assert(cometExchanges(last.executedPlan).nonEmpty, last.executedPlan.toString)
    } finally query.stop()
  }

  test("a cached exchange") {
    for (on <- Seq("true", "false"))
      withSqlConf(session, Aqe -> on) {
        val cached = session.table("facts").repartition(5).persist(StorageLevel.MEMORY_ONLY)
        try {
          val sums = (0 until 2).map(_ => cached.selectExpr("sum(id)", "sum(d)").head())
          assert(sums.map(_.getLong(0)) === Seq.fill(2)(199990000L))
          val rows = cached.orderBy("id").select("s").collect().map(_.getString(0)).toSeq
          assert(rows === (0 until 20000).map(i => (i % 1000).toString))
        } finally cached.unpersist(true)
      }
  }

  test("a limit stops early and leaves nothing") {
    for (on <- Seq("true", "false"))
      withSqlConf(session, Aqe -> on, "spark.comet.batchSize" -> "10") {
        assert(session.table("facts").repartition(5).limit(7).collect().length === 7)
        assert(session.table("facts").repartition(5).take(3).length === 3)
        assert(session.table("facts").repartition(5).selectExpr("id").limit(20).count() === 20)
      }
    assertNothingLeft()
  }

  compared("partitions without rows")(
    _.sql("select /*+ repartition(50, k) */ * from facts where k < 3")
  ) { (df, _) =>
    assertComet(df)
    assert(df.queryExecution.toRdd.getNumPartitions === 50)
  }

  compared("no input partitions")(session =>
    dataFrame(
      session,
      session.table("names").schema,
      session.sparkContext.emptyRDD[InternalRow]
    ).repartition(4).groupBy("k").count()
  )((df, _) => assertComet(df))

  compared("union of exchanges, and a columnar source")(
    _.sql("select * from (select /*+ repartition(3) */ id, s from facts union all " +
      "select /*+ repartition(4, k) */ k, name from names) order by 1, 2")
  )((df, _) => assertComet(df))
}
