package org.apache.spark.comet

import org.apache.spark.sql.functions.col

/** Threads that feed a script or a pipe may read a shuffle beyond the end of their task. */
class FeedThreadSuite extends CometTestBase {

  test("a pipe whose process reads one line only") {
    withComet() { session =>
      val rows = session.range(0, 300000, 1, 2)
        .select(col("id"), col("id").cast("string").as("text"))
        .repartition(6, col("id"))
      (1 to 5).foreach { _ =>
        val lines = rows.queryExecution.toRdd.map(_.getUTF8String(1).toString).pipe("head -n 1")
        assert(lines.collect().length === 6)
      }
      assertComet(rows)
    }
  }

  test("a script whose output is wanted for three rows only") {
    withComet() { session =>
      session.range(0, 300000, 1, 2).selectExpr("id", "cast(id as string) as text")
        .createOrReplaceTempView("numbers")
      (1 to 5).foreach { _ =>
        val lines = session.sql(
          "select transform(id, text) using 'cat' as (a, b) from " +
            "(select * from numbers distribute by id)"
        )
        assert(lines.limit(3).collect().length === 3)
      }
    }
  }
}
