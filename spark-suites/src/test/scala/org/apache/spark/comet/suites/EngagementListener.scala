package org.apache.spark.comet.suites

import scala.collection.mutable

import org.apache.spark.SparkEnv
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent, SparkListenerJobStart}
import org.apache.spark.sql.execution.SparkPlanInfo
import org.apache.spark.sql.execution.ui.{
  SparkListenerSQLAdaptiveExecutionUpdate,
  SparkListenerSQLExecutionEnd,
  SparkListenerSQLExecutionStart
}

/** Writes which shuffle manager each job had, and whose exchanges were in the last plan of each query. */
class EngagementListener extends SparkListener {

  private val lastPlans = mutable.HashMap[Long, SparkPlanInfo]()

  override def onJobStart(job: SparkListenerJobStart): Unit =
    Events.write(
      "job",
      "manager" -> Option(SparkEnv.get).fold("none")(_.shuffleManager.getClass.getName)
    )

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionStart => lastPlans(e.executionId) = e.sparkPlanInfo
    case e: SparkListenerSQLAdaptiveExecutionUpdate => lastPlans(e.executionId) = e.sparkPlanInfo
    case e: SparkListenerSQLExecutionEnd => lastPlans.remove(e.executionId).foreach(writeExchanges)
    case _ =>
  }

  private def writeExchanges(plan: SparkPlanInfo): Unit = {
    val names = nodes(plan).map(_.nodeName).toSeq
    val (ours, sparks) =
      (names.count(_.startsWith("CometShuffleExchange")), names.count(_ == "Exchange"))
    if (ours + sparks > 0) Events.write("query", "ours" -> ours, "sparks" -> sparks)
  }

  private def nodes(plan: SparkPlanInfo): Iterator[SparkPlanInfo] =
    Iterator(plan) ++ plan.children.iterator.flatMap(nodes)
}
