package org.apache.spark.comet

import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{
  REBALANCE_PARTITIONS_BY_COL,
  REPARTITION_BY_NUM,
  ReusedExchangeExec
}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}

/** What adaptive execution makes of our exchange. */
class AdaptiveExchangeSuite extends ReferenceTests {
  import CometTestBase._

  private val aqe = Aqe -> "true"
  private val small = "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "20k"
  private val oneByOne = "spark.sql.adaptive.coalescePartitions.parallelismFirst" -> "false"

  private def reads(df: DataFrame): Seq[AQEShuffleReadExec] =
    collect(df.queryExecution.executedPlan) { case read: AQEShuffleReadExec => read }

  private def specs(df: DataFrame): Seq[ShufflePartitionSpec] = reads(df).flatMap { read =>
    assert(cometExchanges(read).headOption === exchanges(read).headOption, read.toString)
    read.partitionSpecs
  }

  compared("small partitions are coalesced", aqe, oneByOne)(
    _.sql("select k, count(*), sum(d) from facts group by k")
  ) { (df, _) =>
    assertComet(df)
    assert(specs(df).exists {
      case CoalescedPartitionSpec(start, end, _) => end - start > 1
      case _ => false
    })
  }

  compared(
    "a skewed partition is split by map outputs",
    aqe,
    small,
    oneByOne,
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "20k",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "1",
    "spark.comet.shuffle.compression.codec" -> "none"
  )(_.sql("select name, payload from skewed join names using (k)")) { (df, _) =>
    assertComet(df)
    assert(collect(df.queryExecution.executedPlan) {
      case join: SortMergeJoinExec if join.isSkewJoin => join
    }.nonEmpty)
    assert(specs(df).exists(_.isInstanceOf[PartialReducerPartitionSpec]))
  }

  // A broadcast join needs no partitioning, so the exchange below it is read where it was written.
  private val localRead = Seq(
    aqe,
    "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "100k",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1"
  )

  compared("a join with a hint reads whole partitions", localRead :+ oneByOne: _*)(
    _.sql("select /*+ merge(n) */ f.id, f.s, n.name from facts f join " +
      "(select k, max(name) as name from names where name <> 'name 3' group by k) n on f.k = n.k")
  ) { (df, _) =>
    assertComet(df)
    assert(reads(df).nonEmpty)
  }

  compared("a join becomes a broadcast join by row sizes, and is read locally", localRead: _*)(
    _.sql("select f.id, f.s, n.name from facts f join names n on f.k = n.k where n.k % 2 = 0")
  ) { (df, _) =>
    assertComet(df)
    assert(collect(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec => j }.nonEmpty)
    val local = specs(df)
    assert(reads(df).exists(_.isLocalRead))
    assert(local.exists {
      case _: PartialMapperPartitionSpec | _: CoalescedMapperPartitionSpec => true
      case _ => false
    })
  }

  private val joinOfManyOutputs =
    "select f.id, n.name from (select /*+ repartition(16) */ * from facts) f join names n on f.k = n.k"

  compared(
    "a local read of many map outputs joins them",
    (localRead ++ Seq(
      "spark.sql.shuffle.partitions" -> "2",
      "spark.comet.shuffle.mode" -> "jvm"
    )): _*
  )(_.sql(joinOfManyOutputs)) { (df, reference) =>
    assertComet(df)
    // It depends on which side is written first.
    val again = Iterator.continually(session.sql(joinOfManyOutputs)).take(20)
    val read = (Iterator(df) ++ again).exists { joined =>
      assertSame(reference.rows, placedRows(joined).map(_._2))
      specs(joined).exists(_.isInstanceOf[CoalescedMapperPartitionSpec])
    }
    assert(read, df.queryExecution.toString)
  }

  compared("repartition(n) keeps n partitions", aqe, oneByOne)(
    _.table("facts").repartition(9)
  ) { (df, _) =>
    assert(assertComet(df).map(_.shuffleOrigin) === Seq(REPARTITION_BY_NUM))
    assert(df.queryExecution.toRdd.getNumPartitions === 9)
  }

  compared(
    "rebalance by a column splits the large partition",
    aqe,
    small,
    "spark.comet.shuffle.compression.codec" -> "none"
  )(_.sql("select /*+ rebalance(k) */ * from skewed")) { (df, _) =>
    assert(assertComet(df).map(_.shuffleOrigin) === Seq(REBALANCE_PARTITIONS_BY_COL))
    assert(specs(df).exists(_.isInstanceOf[PartialReducerPartitionSpec]))
  }

  compared("rebalance without a column", aqe, small)(
    _.sql("select /*+ rebalance */ * from facts")
  )((df, _) => assertComet(df))

  test("exchanges keep their link to the logical plan: an empty rebalance at the top stays") {
    withSqlConf(session, aqe) {
      val empty = session.range(0).hint("rebalance").asInstanceOf[DataFrame]
      assert(empty.rdd.getNumPartitions === 1)
      assertComet(empty).foreach(exchange => assert(exchange.logicalLink.isDefined))
    }
  }

  for (on <- Seq(true, false))
    compared(s"equal exchanges are made once, AQE $on", Aqe -> on.toString)(
      _.sql("with t as (select k, count(*) c from facts group by k) " +
        "select a.k, a.c, b.c from t a join t b on a.k = b.k")
    ) { (df, _) =>
      val plan = df.queryExecution.executedPlan
      assertComet(df)
      val reused = collect(plan) { case ReusedExchangeExec(_, child) => child }
      assert(reused.nonEmpty && reused.forall(isComet), plan.toString)
    }

  compared("an empty side ends the join", aqe)(
    _.sql("select * from facts join (select k from names where name = 'none' group by k) using (k)")
  )((_, _) => ())

  compared("no input partitions", aqe) { session =>
    dataFrame(
      session,
      session.table("names").schema,
      session.sparkContext.emptyRDD[org.apache.spark.sql.catalyst.InternalRow]
    ).repartition(4).groupBy("k").count()
  }((_, _) => ())

  compared("stages report rows and bytes of rows", aqe)(
    _.sql("select s, count(*) from facts group by s")
  ) { (df, reference) =>
    val stages = collect(df.queryExecution.executedPlan) { case s: ShuffleQueryStageExec => s }
    val statistics = stages.map(_.getRuntimeStatistics)
    assert(statistics.map(_.sizeInBytes.toLong) === reference.metrics.map(_("dataSize")))
    assert(statistics.map(_.rowCount.get.toLong) ===
      reference.metrics.map(_("shuffleRecordsWritten")))
  }
}
