package org.apache.spark.comet.sql

import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeExec}

/** What `explain` and the SQL page of the UI add to a plan: which exchanges are ours, and why the others are not. */
class CometExplainGenerator extends ExtendedExplainGenerator {

  override def title: String = "Comet Shuffle"

  override def generateExtendedInfo(plan: SparkPlan): String = {
    val nodes = allNodes(plan)
    val ours = nodes.collect { case exchange: CometShuffleExchangeExec => exchange }
    val others = nodes.collect { case exchange: ShuffleExchangeExec => exchange }
    val native = ours.count(_.writer == NativeWriter)
    val summary =
      s"${ours.length} of ${ours.length + others.length} shuffle exchanges are Comet's" +
        (if (ours.isEmpty) "" else s", $native of them written in native code")
    val notNative = ours.flatMap { exchange =>
      exchange.getTagValue(ReplaceShuffleExchanges.NotNativeReason).map { reason =>
        s"${exchange.nodeName} ${exchange.outputPartitioning} is written as rows: $reason"
      }
    }
    val left = others.map { exchange =>
      val reason = exchange.getTagValue(ReplaceShuffleExchanges.FallbackReason)
        .getOrElse("not looked at")
      s"Exchange ${exchange.outputPartitioning} stays with Spark's shuffle: $reason"
    }
    (summary +: (notNative ++ left)).mkString("", "\n", "\n")
  }

  private def allNodes(plan: SparkPlan): Seq[SparkPlan] = {
    val below = plan match {
      case adaptive: AdaptiveSparkPlanExec => Seq(adaptive.executedPlan)
      case stage: QueryStageExec => Seq(stage.plan)
      case _: ReusedExchangeExec => Nil
      case other => other.children ++ other.subqueries
    }
    plan +: below.flatMap(allNodes)
  }
}
