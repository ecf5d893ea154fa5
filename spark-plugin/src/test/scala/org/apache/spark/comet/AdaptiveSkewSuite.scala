package org.apache.spark.comet

import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, ShufflePartitionSpec}
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, ShuffledJoin, SortMergeJoinExec}

/** Skew and uneven partitions: what tests of Spark's AdaptiveQueryExecSuite look at that find no `ShuffleExchangeExec` in
  * our plans, or no skew by their thresholds of some hundred bytes (`spark-suites/by-design.tsv`).
  */
class AdaptiveSkewSuite extends ReferenceTests {
  import CometTestBase._

  private val aqe = Seq(
    Aqe -> "true",
    Codec -> "none",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "20k",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst" -> "false"
  )
  private val skew = aqe ++ Seq(
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "20k",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "1"
  )
  private val forced = "spark.sql.adaptive.forceOptimizeSkewedJoin" -> "true"

  private def joins(df: DataFrame): Seq[ShuffledJoin] =
    collect(df.queryExecution.executedPlan) { case join: ShuffledJoin => join }

  private def specs(df: DataFrame): Seq[ShufflePartitionSpec] =
    collect(df.queryExecution.executedPlan) { case read: AQEShuffleReadExec =>
      assert(cometExchanges(read).headOption === exchanges(read).headOption, read.toString)
      read.partitionSpecs
    }.flatten

  private def assertSplit(df: DataFrame, split: Boolean, numExchanges: Int): Unit = {
    assert(assertComet(df).length === numExchanges)
    assert(joins(df).exists(_.isSkewJoin) === split, df.queryExecution.toString)
    assert(specs(df).exists(_.isInstanceOf[PartialReducerPartitionSpec]) === split)
  }

  for (joinType <- Seq("inner", "left outer", "right outer", "left semi"))
    compared(
      s"SPARK-29544: a skewed side is split where the join type lets it be: $joinType",
      skew: _*
    )(
      _.sql(s"select * from skewed $joinType join names on skewed.k = names.k")
    ) { (df, _) =>
      // The side whose rows without a partner are kept is split, never the other one.
      assertSplit(df, split = joinType != "right outer", numExchanges = 2)
    }

  // The aggregation would use the partitioning of the join.
  private val joinBelowAggregate =
    "select s.k, count(*), max(payload) from skewed s join names n on s.k = n.k group by s.k"

  compared("SPARK-33832: no skewed partition is split if that takes another shuffle", skew: _*)(
    _.sql(joinBelowAggregate)
  )((df, _) => assertSplit(df, split = false, numExchanges = 2))

  compared("SPARK-33832: unless it is forced", skew :+ forced: _*)(
    _.sql(joinBelowAggregate)
  )((df, _) => assertSplit(df, split = true, numExchanges = 3))

  compared("SPARK-37328: a skewed join of three tables", skew: _*)(
    _.sql(
      "select s.payload, n.name, f.d from skewed s join names n on s.k = n.k " +
        "join (select * from facts where id < 97) f on s.k + 1 = f.k"
    )
  )((df, _) => assertSplit(df, split = true, numExchanges = 4))

  compared(
    "SPARK-35264: a join of small partitions hashes them",
    aqe :+ ("spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold" -> "20k"): _*
  )(_.sql("select * from facts join names using (k)")) { (df, _) =>
    assertComet(df)
    assert(joins(df).forall(_.isInstanceOf[ShuffledHashJoinExec]), df.queryExecution.toString)
  }

  compared(
    "SPARK-35264: a join of large ones sorts them",
    aqe :+ ("spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold" -> "10"): _*
  )(_.sql("select * from facts join names using (k)")) { (df, _) =>
    assertComet(df)
    assert(joins(df).forall(_.isInstanceOf[SortMergeJoinExec]), df.queryExecution.toString)
  }
}
