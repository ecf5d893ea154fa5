package org.apache.spark.comet

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.types.DataType

/** Rows, as most operators hand them on. */
class ShuffleComparisonSuite extends ShuffleComparison {
  import CometTestBase._

  override def source(df: DataFrame): LogicalPlan = df.queryExecution.analyzed
  override def supports(dataType: DataType): Boolean = true
  override def writer(shape: String): String = "jvm"

  for (codec <- codecs; aqe <- Seq(false, true)) {
    test(s"in memory, $codec, AQE $aqe") {
      withComet(Codec -> codec, sampling) { session =>
        assert(compare(session, fat = false, aqe, shapes) === 0)
      }
    }

    test(s"forced spill, $codec, AQE $aqe") {
      withComet(smallMemory :+ sampling :+ (Codec -> codec): _*) { session =>
        assert(compare(session, fat = true, aqe, shapes.filter(_ != "window")) > 0)
      }
    }
  }

  test("the reader leaves memory to the operators above it, in a pool that is enough for Spark") {
    withComet(smallMemory :+ sampling: _*) { session =>
      compare(session, fat = true, aqe = false, Seq("window"))
    }
  }
}
