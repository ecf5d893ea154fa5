package org.apache.spark.comet

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.types.DataType

/** Rows, as most operators hand them on, through the bypass writer. */
class ShuffleComparisonSuite extends RowComparison {
  test("the reader leaves memory to the operators above it, in a pool that is enough for Spark") {
    withComet(smallMemory :+ sampling: _*) { session =>
      compare(session, fat = true, aqe = false, Seq("window"))
    }
  }
}

/** Rows through the sort-based writer, into as few partitions as the bypass writer has, and read by Spark's own
  * transition.
  */
class SortComparisonSuite extends RowComparison {
  override def confs: Seq[(String, String)] = Seq(
    "spark.shuffle.sort.bypassMergeThreshold" -> "1",
    "spark.comet.columnarToRow.enabled" -> "false"
  )
  override protected def codecs: Seq[String] = Seq("lz4", "zstd")
}

/** More partitions than Spark's default. */
class Sort201ComparisonSuite extends RowComparison {
  override protected def partitions: Int = 201
  override protected def seeds: Seq[Long] = 0L until 2L
  override protected def codecs: Seq[String] = Seq("lz4", "none")
}

/** More partitions than most tasks have rows. */
class Sort2000ComparisonSuite extends RowComparison {
  override protected def partitions: Int = 2000
  override protected def seeds: Seq[Long] = Seq(3L)
  override protected def codecs: Seq[String] = Seq("lz4")
  override protected def shapes: Seq[String] = Seq("round robin", "hash", "range")
}

abstract class RowComparison extends ShuffleComparison {
  import CometTestBase._

  override def source(df: DataFrame): LogicalPlan = df.queryExecution.analyzed
  override def supports(dataType: DataType): Boolean = true
  override def writer(shape: String): String = "jvm"

  for (codec <- codecs; aqe <- Seq(false, true)) {
    test(s"in memory, $codec, AQE $aqe") {
      withComet(confs :+ sampling :+ (Codec -> codec): _*) { session =>
        assert(compare(session, fat = false, aqe, shapes) === 0)
      }
    }

    test(s"forced spill, $codec, AQE $aqe") {
      withComet(smallMemory ++ confs :+ sampling :+ (Codec -> codec): _*) { session =>
        assert(compare(session, fat = true, aqe, shapes.filter(_ != "window")) > 0)
      }
    }
  }
}
