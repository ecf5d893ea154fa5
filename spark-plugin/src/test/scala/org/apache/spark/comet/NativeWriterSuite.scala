package org.apache.spark.comet

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.types._

/** The native writer in queries: what it costs, where it is chosen, what it leaves. */
class NativeWriterSuite extends CometTestBase {
  import CometTestBase._

  private def nativeExchanges(df: DataFrame): Seq[ShuffleExchangeLike] =
    exchanges(df.queryExecution.executedPlan).filter(_.nodeName == "CometShuffleExchange(native)")

  /** Runs the query and returns its one native exchange. */
  private def ran(df: DataFrame): ShuffleExchangeLike = {
    df.queryExecution.toRdd.foreach(_ => ())
    val native = nativeExchanges(df)
    assert(native.length === 1, df.queryExecution.executedPlan)
    native.head
  }

  for (pool <- Seq("fair_unified", "greedy_unified"))
    test(s"ten million ints to 201 partitions take few calls for memory, $pool") {
      withComet(
        OffHeapSize -> "4g",
        Aqe -> "false",
        "spark.comet.exec.memoryPool" -> pool,
        "spark.sql.shuffle.partitions" -> "201"
      ) { session =>
        val tasks = 5
        val ints = session.range(0, 10000000, 1, tasks).selectExpr("cast(id as int) as i").cache()
        assert(ints.count() === 10000000)
        for (query <- Seq(ints.repartition(201), ints.repartition(ints("i")))) {
          val exchange = ran(query.asInstanceOf[DataFrame])
          assert(exchange.numMappers === tasks)
          assert(exchange.metrics("shuffleRecordsWritten").value === 10000000)
          assert(exchange.metrics("memoryAcquisitions").value <= 13 * tasks)
          assert(exchange.metrics("memoryReleases").value === tasks)
          assert(exchange.metrics("spillCount").value === 0)
        }
        ints.unpersist(true)
      }
    }

  // Values of every type that can be a key, the rare bit patterns among them.
  private val keyTypes = RandomData.atomicTypes.filterNot(_ == VariantType) ++ Seq(
    ArrayType(IntegerType),
    ArrayType(StringType),
    StructType.fromDDL("a int, b string, c double, d decimal(38,10)"),
    ArrayType(StructType.fromDDL("a decimal(20,2), b array<double>"))
  )

  test("10,000 keys of each type go where Spark's own expression says") {
    withComet(
      Aqe -> "false",
      "spark.sql.optimizer.excludedRules" ->
        "org.apache.spark.sql.catalyst.optimizer.CollapseRepartition"
    ) { session =>
      keyTypes.zipWithIndex.foreach { case (keyType, i) =>
        withClue(s"$keyType: ")(checkPlaces(session, keyType, i))
      }
    }
  }

  private def checkPlaces(session: SparkSession, keyType: DataType, seed: Int): Unit = {
    val schema = StructType(Seq(StructField("k", keyType)))
    val rows = session.sparkContext.parallelize(0 until 4, 4).flatMap { p =>
      val data = new RandomData(seed * 100 + p)
      Iterator.fill(2500)(new GenericInternalRow(Array(data.value(keyType, nullable = true))))
    }
    // Our own batches carry every type.
    val batches = dataFrame(session, schema, rows.map(row => row: InternalRow)).repartition(3)
    val plan = batches.queryExecution.analyzed
    val partitions = 17
    val df = dataFrame(session, RepartitionByExpression(plan.output, plan, Some(partitions)))
    val exchange = exchanges(df.queryExecution.executedPlan).head
    assert(exchange.nodeName === "CometShuffleExchange(native)")
    val id = exchange.outputPartitioning.asInstanceOf[HashPartitioning].partitionIdExpression
    val output = exchange.child.output
    val (right, wrong) = df.queryExecution.toRdd.mapPartitionsWithIndex { (partition, placed) =>
      val projection = UnsafeProjection.create(id :: Nil, output)
      placed.map(row => projection(row).getInt(0) == partition)
    }.collect().partition(identity)
    assert(wrong.isEmpty)
    assert(right.length === 10000)
  }

  test("a join of a native side with one through Spark's exchange loses no row") {
    val path = temporaryFolder().toString + "/keys"
    val types = keyTypes.filterNot(t =>
      t.existsRecursively {
        case NullType | CalendarIntervalType | _: UserDefinedType[_] | _: TimeType => true
        case string: StringType => string != StringType
        case _ => false
      }
    )
    def write(session: SparkSession, keyType: DataType, i: Int): Unit =
      for ((side, key, id) <- Seq(("left", "k1", "id1"), ("right", "k2", "id2"))) {
        val schema = StructType(Seq(StructField(key, keyType), StructField(id, LongType)))
        val rows = session.sparkContext.parallelize(0 until 4, 4).flatMap { p =>
          val data = new RandomData(i * 100 + p)
          Iterator.tabulate(300)(n =>
            new GenericInternalRow(
              Array[Any](data.value(keyType, nullable = true), p * 1000L + n)
            ): InternalRow
          )
        }
        dataFrame(session, schema, rows).write.mode("overwrite").parquet(s"$path/$i/$side")
      }
    def join(session: SparkSession, i: Int): DataFrame = {
      val left = session.read.parquet(s"$path/$i/left")
      // A computed column makes this side rows, which mode=native leaves to Spark.
      val right = session.read.parquet(s"$path/$i/right").selectExpr("k2", "id2", "id2 + 1 as next")
      left.join(right.hint("shuffle_hash"), left("k1") === right("k2"), "left_outer")
        .asInstanceOf[DataFrame]
    }
    val confs = Seq(
      Aqe -> "false",
      "spark.sql.shuffle.partitions" -> "6",
      "spark.comet.shuffle.mode" -> "native",
      "spark.sql.autoBroadcastJoinThreshold" -> "-1"
    )
    val expected = withSpark(confs: _*) { session =>
      types.zipWithIndex.map { case (t, i) =>
        write(session, t, i)
        placedRows(join(session, i)).map(_._2)
      }
    }
    withComet(confs: _*) { session =>
      types.zipWithIndex.foreach { case (t, i) =>
        val df = join(session, i)
        val names = exchanges(df.queryExecution.executedPlan).map(_.nodeName).sorted
        withClue(s"$t, ${df.queryExecution.executedPlan}: ") {
          assertSame(expected(i), placedRows(df).map(_._2))
          assert(names.contains("Exchange"))
          assert(names.contains("CometShuffleExchange(native)"))
        }
      }
    }
  }

  private val tables = Seq("parquet", "orc")

  /** Files with dictionaries, nulls, nested values and partition columns, read as columns. */
  private def writeFiles(session: SparkSession, path: String): Unit = {
    val rows = session.range(0, 30000, 1, 3).selectExpr(
      "id",
      "if(id % 7 = 0, null, cast(id % 50 as string)) as few",
      "concat('text ', id * id) as many",
      "cast(id % 20 as decimal(9,2)) as d9",
      "cast(id as decimal(18,3)) as d18",
      "cast(id % 11 as decimal(30,4)) as d30",
      "if(id % 3 = 0, null, id * 0.5) as x",
      "cast(id % 300 as short) as s",
      "cast(id % 100 as byte) as b",
      "id % 2 = 0 as flag",
      "date_add(date'2020-01-01', cast(id % 1000 as int)) as day",
      "timestamp_micros(id * 1000003) as at",
      "array_repeat(cast(id % 9 as string), cast(id % 4 as int)) as texts",
      "if(id % 5 = 0, null, struct(id as a, cast(id % 3 as string) as b)) as both",
      "map(cast(id % 4 as string), id, 'k', null) as m",
      "if(id < 15000, 'left', null) as part"
    )
    tables.foreach(format =>
      rows.write.mode("overwrite").partitionBy("part").format(format).save(s"$path/$format")
    )
  }

  private val fileQueries = Seq(
    "select /*+ repartition(13) */ * from files",
    "select /*+ repartition(13, few, d18) */ * from files",
    "select /*+ repartition(13, both, texts) */ * from files",
    "select * from files distribute by lower(many), id % 7",
    "select /*+ repartition_by_range(13, d30, many) */ * from files",
    "select /*+ repartition_by_range(13, both, d9) */ * from files",
    "select /*+ repartition(1) */ * from files",
    "select /*+ repartition(5) */ few, part from files",
    "select count(*) from (select /*+ repartition(5) */ 1 from files)"
  )

  private def eachFileQuery(session: SparkSession, path: String, offHeap: String)(
      use: (String, DataFrame) => Unit
  ): Unit = {
    val nested = Seq(
      "spark.sql.columnVector.offheap.enabled" -> offHeap,
      "spark.sql.orc.enableNestedColumnVectorizedReader" -> "true"
    )
    withSqlConf(session, nested: _*) {
      for (format <- tables) {
        session.read.format(format).load(s"$path/$format").createOrReplaceTempView("files")
        fileQueries.foreach(query => use(s"$format: $query", session.sql(query)))
      }
    }
  }

  test(
    "files that are read as columns: dictionaries, constants, nested values; sizes are Spark's"
  ) {
    val path = temporaryFolder().toString
    val isolated = Aqe -> "false"
    val sizes = scala.collection.mutable.HashMap.empty[String, Seq[Long]]
    val rows = scala.collection.mutable.HashMap.empty[String, Seq[CanonicalRow.Bytes]]
    withSpark(isolated) { session =>
      writeFiles(session, path)
      eachFileQuery(session, path, "false") { (name, df) =>
        rows(name) = placedRows(df).map(_._2)
        sizes(name) = exchanges(df.queryExecution.executedPlan).map(_.metrics("dataSize").value)
      }
    }
    for (offHeap <- Seq("true", "false"))
      withComet(isolated) { session =>
        eachFileQuery(session, path, offHeap) { (name, df) =>
          withClue(s"$name, off-heap $offHeap, ${df.queryExecution.executedPlan}: ") {
            assert(nativeExchanges(df).nonEmpty || name.contains("count"))
            assertSame(rows(name), placedRows(df).map(_._2))
            val ours = exchanges(df.queryExecution.executedPlan)
            assert(ours.map(_.metrics("dataSize").value) === sizes(name))
          }
        }
      }
  }

  test("explain says why an exchange is written as rows") {
    withComet() { session =>
      val text = explained(session.range(100).repartition(5).asInstanceOf[DataFrame])
      assert(text.contains("CometShuffleExchange(jvm)"))
      assert(text.contains("0 of them written in native code"))
      assert(text.contains("is written as rows: its input are rows"))
      withSqlConf(session, "spark.comet.shuffle.mode" -> "native") {
        val text = explained(session.range(100).repartition(5).asInstanceOf[DataFrame])
        assert(text.contains("spark.comet.shuffle.mode is native, but its input are rows"))
        assert(!text.contains("CometShuffleExchange"))
      }
      ColumnsStrategy.install(session)
      val batches = Columns(session.range(100).queryExecution.analyzed, ColumnKind.OffHeapVectors)
      val df = dataFrame(session, batches).repartition(5)
      assert(explained(df).contains("CometShuffleExchange(native)"))
      withSqlConf(session, "spark.comet.shuffle.mode" -> "jvm") {
        assert(explained(df.repartition(6)).contains("CometShuffleExchange(jvm)"))
      }
      withSqlConf(session, "spark.sql.shuffle.orderIndependentChecksum.enabled" -> "true") {
        assert(explained(df.repartition(7)).contains("row checksums need rows"))
      }
    }
    withComet("spark.io.encryption.enabled" -> "true") { session =>
      ColumnsStrategy.install(session)
      val batches = Columns(session.range(100).queryExecution.analyzed, ColumnKind.OffHeapVectors)
      val df = dataFrame(session, batches).repartition(5)
      assert(explained(df).contains("spark.io.encryption.enabled is true"))
      assert(df.count() === 100)
    }
  }

  test("round robin is written in native code where the rows have an order") {
    withComet() { session =>
      import session.implicits._
      val pairs = session.sparkContext.parallelize(1 to 100, 3).map(n => (n % 10, n))
      val path = temporaryFolder().toString
      pairs.toDF("k", "v").write.mode("overwrite").parquet(path)
      val sources = Seq(
        "a file" -> session.read.parquet(path) -> true,
        "a cached file" -> session.read.parquet(path).cache() -> true,
        "a cached RDD" -> pairs.toDF("k", "v").cache() -> true,
        "cached rows that were fetched in any order" ->
          pairs.reduceByKey(_ + _).toDF("k", "v").cache() -> false,
        "a cached exchange" -> session.range(100).repartition($"id").cache() -> false
      )
      for (((name, source), ordered) <- sources) {
        val writer = if (ordered) "native" else "jvm"
        val text = explained(source.repartition(5).asInstanceOf[DataFrame])
        assert(text.contains(s"CometShuffleExchange($writer)"), s"$name: $text")
      }
      withSqlConf(session, "spark.sql.sources.useV1SourceList" -> "") {
        val scan = session.read.parquet(path).repartition(6).asInstanceOf[DataFrame]
        assert(explained(scan).contains("BatchScan"))
        assert(explained(scan).contains("CometShuffleExchange(native)"))
      }
    }
  }

  private def explained(df: DataFrame): String = df.queryExecution.explainString(
    org.apache.spark.sql.execution.ExplainMode.fromString("simple")
  )
}
