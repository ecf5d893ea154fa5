package org.apache.spark.comet

import java.io.File

import org.scalatest.concurrent.TimeLimits
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.SparkEnv
import org.apache.spark.memory.DenyingMemoryManager
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, RepartitionByExpression}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.{LongType, StringType, StructType}

/** Memory that is short, in ways that real clusters are short of it. */
class MemoryPressureSuite extends CometTestBase with TimeLimits {
  import CometTestBase._

  private val writers = Seq("native" -> "10000", "bypass" -> "10000", "sort" -> "1")
  private val threshold = "spark.shuffle.sort.bypassMergeThreshold"

  test("8 tasks, 64 MiB, 2,000 partitions") {
    failAfter(Span(180, Seconds)) {
      withComet("spark.master" -> "local[8]", OffHeapSize -> "64m", Aqe -> "false") { session =>
        val df = session.range(0, 1600000, 1, 8)
          .selectExpr("id", "repeat(cast(id as string), 10) as text")
          .repartition(2000, col("id")).asInstanceOf[DataFrame]
        val ids = df.queryExecution.toRdd.map(_.getLong(0)).collect().sorted
        assert(ids.toSeq === (0L until 1600000L))
        assert(assertComet(df).head.metrics("spillCount").value >= 8)
      }
    }
  }

  test("8 tasks in a tight pool, of which one fails: the others are right") {
    failAfter(Span(120, Seconds)) {
      withComet("spark.master" -> "local[8]", OffHeapSize -> "32m", threshold -> "1") { session =>
        session.udf.register(
          "failing",
          (id: Long) => if (id == 350000) throw new IllegalStateException("on purpose") else id
        )
        def query(column: String): Long = session.range(0, 800000, 1, 8)
          .selectExpr(s"$column as id", "repeat(cast(id as string), 10) as text")
          .repartition(500, col("id")).selectExpr("sum(id)").head().getLong(0)
        val failure = intercept[Exception](query("failing(id)"))
        assert(failure.getMessage.contains("on purpose"), failure)
        eventually(assert(SparkEnv.get.memoryManager.executionMemoryUsed === 0))
        assert(query("id") === 319999600000L)
      }
    }
  }

  for ((writer, bypassThreshold) <- writers; seed <- Seq(1L, 2L))
    test(s"a spill inside every request for memory: $writer, seed $seed") {
      val schema = new StructType().add("id", LongType).add("text", StringType)
      def plan(session: SparkSession): LogicalPlan = {
        val rows = randomRows(session, seed, schema, partitions = 3, rows = 20000, fat = false)
        val child = rows.queryExecution.analyzed
        val columns = if (writer == "native") Columns(child, ColumnKind.OffHeapVectors) else child
        RepartitionByExpression(Seq(columns.output.head), columns, Some(13))
      }
      def run(session: SparkSession): (DataFrame, Seq[(Int, CanonicalRow.Bytes)]) = {
        ColumnsStrategy.install(session)
        val df = dataFrame(session, plan(session))
        (df, placedRows(df))
      }
      val expected = withSpark(Aqe -> "false")(session => run(session)._2)
      withComet(Aqe -> "false", threshold -> bypassThreshold, "spark.buffer.pageSize" -> "64k") {
        session =>
          val hostile = new DenyingMemoryManager(
            SparkEnv.get.conf,
            // The native writer asks for less before it spills.
            inARow = if (writer == "native") 2 else 1
          )
          DenyingMemoryManager.install(hostile)
          val (df, rows) = run(session)
          assertSame(expected, rows)
          val exchange = assertComet(df).head
          assert(hostile.denied > 0)
          // The native writer asks for 1 MiB at a time.
          assert(exchange.metrics("spillCount").value > (if (writer == "native") 0 else 5))
          val data = localFiles().filter(_.getName.endsWith(".data"))
          assert(data.length === 3)
          assert(data.map(_.length()).sum === exchange.metrics("shuffleBytesWritten").value)
          data.foreach(file => assert(file.length() === indexEnd(file)))
      }
    }

  test("where partitions have few rows, spills take the fullest of them: fewer and larger blocks") {
    val partitions = 1000
    def query(session: SparkSession): DataFrame = {
      val schema = new StructType().add("id", LongType).add("text", StringType)
      val rows = randomRows(session, 3, schema, partitions = 1, rows = 60000, fat = false)
      rows.repartition(partitions, col("id")).asInstanceOf[DataFrame]
    }
    val one = "spark.master" -> "local[1]"
    val expected = withSpark(one, Aqe -> "false")(session => placedRows(query(session)))
    withComet(one, Aqe -> "false", OffHeapSize -> "2m", "spark.buffer.pageSize" -> "128k") {
      session =>
        val df = query(session)
        assertSame(expected, placedRows(df))
        val metrics = assertComet(df).head.metrics
        // All rows of a spill would be a block for nearly each partition, a third of them one for fewer.
        val spills = metrics("spillCount").value
        assert(spills > 3)
        assert(metrics("blocksWritten").value < partitions + spills * partitions / 2)
    }
  }

  // The last offset of the index file beside a data file.
  private def indexEnd(data: File): Long = {
    val name = data.getName.replace(".data", ".index")
    val index = localFiles().find(_.getName == name).get
    val bytes = java.nio.ByteBuffer.wrap(java.nio.file.Files.readAllBytes(index.toPath))
    bytes.getLong(bytes.capacity() - 8)
  }

  private val counting = Seq(
    "spark.shuffle.spill.numElementsForceSpillThreshold" -> "1000",
    "spark.shuffle.spill.maxSizeInBytesForSpillThreshold" -> "1m"
  )
  for ((writer, bypassThreshold) <- writers.tail; (key, value) <- counting)
    test(s"$key is kept by $writer") {
      withComet(
        "spark.master" -> "local[1]",
        Aqe -> "false",
        key -> value,
        threshold -> bypassThreshold,
        "spark.buffer.pageSize" -> "128k"
      ) { session =>
        val df = session.range(0, 10500, 1, 1)
          .selectExpr("id", "repeat('x', 1000) as text").repartition(5).asInstanceOf[DataFrame]
        assert(df.queryExecution.toRdd.map(_.getLong(0)).collect().sorted === (0 until 10500))
        val spills = assertComet(df).head.metrics("spillCount").value
        // 1,024 bytes a row, of which the second threshold holds about a thousand.
        assert(spills >= 10)
        if (writer == "sort") assert(spills <= 12)
      }
    }
}
