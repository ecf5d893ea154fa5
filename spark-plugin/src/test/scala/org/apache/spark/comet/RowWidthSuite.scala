package org.apache.spark.comet

import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.functions.{col, lit}

/** Rows, batches and partitions that are larger than pages, blocks and 2 GiB. */
class RowWidthSuite extends CometTestBase {
  import CometTestBase._

  private val writers = Seq("bypass" -> "10000", "sort" -> "1")
  private val threshold = "spark.shuffle.sort.bypassMergeThreshold"

  /** Length and first and last character of each text. */
  private def ends(df: org.apache.spark.sql.DataFrame): Seq[(Long, Int, String)] = {
    val classic = df.asInstanceOf[DataFrame]
    val seen = classic.queryExecution.toRdd.map { row =>
      val text = row.getUTF8String(1)
      val last = text.substring(text.numChars() - 1, text.numChars()).toString
      (row.getLong(0), text.numBytes(), last)
    }.collect().sorted.toSeq
    assertComet(classic)
    seen
  }

  test("a row of 150 MB among the rows of many partitions, of which some are spilled") {
    withComet(
      "spark.master" -> "local[1]",
      Aqe -> "false",
      threshold -> "1",
      OffHeapSize -> "512m"
    ) { session =>
      // It is of the partition with the most rows, which leaves its page to others.
      val rows = session.range(0, 6000, 1, 1).selectExpr(
        "if(id % 10 = 0, 0, id) as p",
        "id",
        "repeat(concat(id, ','), if(id = 0, 75000000, 20000)) as text"
      )
      def seen(df: org.apache.spark.sql.DataFrame): Seq[(Long, Int, Int)] =
        df.asInstanceOf[DataFrame].queryExecution.toRdd.map { row =>
          val text = row.getUTF8String(2)
          (row.getLong(1), text.numBytes(), text.hashCode())
        }.collect().sorted.toSeq
      val shuffled = rows.repartition(1000, col("p"))
      assert(seen(shuffled) === seen(rows))
      val exchange = assertComet(shuffled.asInstanceOf[DataFrame]).head
      assert(exchange.metrics("spillCount").value > 0)
    }
  }

  test("batches whose texts are 2 GiB once they are looked up in their dictionary") {
    val path = temporaryFolder().toString
    val (rows, length) = (3600L, 600000)
    withSpark() { session =>
      session.range(0, rows, 1, 1)
        .selectExpr("id", s"repeat('t', $length) as text", s"array(repeat('u', $length)) as texts")
        .write.parquet(s"$path/texts")
    }
    withComet("spark.master" -> "local[1]", Aqe -> "false", OffHeapSize -> "1g") { session =>
      for (text <- Seq("text", "texts[0]")) {
        val column = text.takeWhile(_ != '[')
        val df = session.read.parquet(s"$path/texts").select("id", column).repartition(3)
        assert(ends(df.selectExpr("id", text)) ===
          (0L until rows).map(id => (id, length, if (column == text) "t" else "u")))
        val names = exchanges(df.asInstanceOf[DataFrame].queryExecution.executedPlan)
        assert(names.map(_.nodeName) === Seq("CometShuffleExchange(native)"))
      }
    }
  }

  for ((writer, bypassThreshold) <- writers) {
    val confs = Seq(Aqe -> "false", threshold -> bypassThreshold)

    test(s"rows larger than a page, and one of 300 MB: $writer") {
      withComet(confs ++ Seq(
        "spark.master" -> "local[1]",
        OffHeapSize -> "3g",
        "spark.buffer.pageSize" -> "1m"
      ): _*) { session =>
        val sizes = Seq(10, 5 << 20, 300000000, 20, 70 << 20)
        import session.implicits._
        val df = session.sparkContext.parallelize(sizes.zipWithIndex, 1).toDF("size", "id")
          .selectExpr("cast(id as bigint) id", "concat(repeat('x', size), id) as text")
          .repartition(3, col("id"))
        val expected = sizes.zipWithIndex.map { case (size, id) =>
          (id.toLong, size + 1, id.toString)
        }
        assert(ends(df) === expected)
      }
    }

    test(s"5,000 columns: $writer") {
      withComet(confs: _*) { session =>
        val columns = (0 until 5000).map(i => (col("id") * 7 + i).as(s"c$i"))
        // The plan of that many columns is slow to compile, and nothing is shown by it.
        withSqlConf(session, "spark.sql.codegen.wholeStage" -> "false") {
          val df = session.range(0, 300, 1, 2).select(col("id") +: columns: _*)
            .repartition(10, col("id")).asInstanceOf[DataFrame]
          val seen = df.queryExecution.toRdd
            .map(row => (row.getLong(0), row.getLong(1), row.getLong(5000)))
            .collect().sorted
          assert(seen.toSeq === (0L until 300L).map(id => (id, id * 7, id * 7 + 4999)))
          assertComet(df)
        }
      }
    }

    test(s"a batch of strings of more than 2 GiB, and a partition of more: $writer") {
      withComet(confs ++ Seq(
        "spark.master" -> "local[1]",
        OffHeapSize -> "4g",
        Codec -> "none"
      ): _*) { session =>
        // Fewer rows than a block may have.
        val rows = 2300L
        val df = session.range(0, rows, 1, 1)
          .selectExpr("id", "concat(repeat('y', 1000000), id % 10) as text")
          .repartition(1, lit(1))
        assert(ends(df) === (0L until rows).map(id => (id, 1000001, (id % 10).toString)))
        val data = localFiles().filter(_.getName.endsWith(".data"))
        assert(data.map(_.length()).sum > Int.MaxValue)
      }
    }
  }
}
