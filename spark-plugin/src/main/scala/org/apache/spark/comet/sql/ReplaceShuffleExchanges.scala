package org.apache.spark.comet.sql

import org.apache.spark.comet.CometConf
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{ColumnarToRowExec, RowToColumnarExec, SparkPlan, UnionExec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/** Replaces Spark's exchanges by ours where that is possible. Where it isn't, the exchange carries the reason. An
  * exchange that was looked at is not looked at again: adaptive execution must find in a stage what it put there.
  */
object ReplaceShuffleExchanges extends Rule[SparkPlan] {

  /** Why an exchange stays with Spark's shuffle. */
  val FallbackReason: TreeNodeTag[String] = TreeNodeTag[String]("comet.shuffle.fallback")

  /** Why an exchange of ours is not written in native code. */
  val NotNativeReason: TreeNodeTag[String] = TreeNodeTag[String]("comet.shuffle.notNative")

  override def apply(plan: SparkPlan): SparkPlan = plan.transformUp {
    case exchange: ShuffleExchangeExec if exchange.getTagValue(FallbackReason).isEmpty =>
      ShuffleSupport.choose(exchange, conf) match {
        case Right(Choice(writer, notNative)) =>
          val ours = CometShuffleExchangeExec(
            exchange.outputPartitioning,
            exchange.child,
            exchange.shuffleOrigin,
            exchange.advisoryPartitionSize,
            writer
          )
          // Spark copies tags, the link to the logical plan among them, only to a node that has none.
          ours.copyTagsFrom(exchange)
          notNative.foreach(ours.setTagValue(NotNativeReason, _))
          ours
        case Left(reason) =>
          exchange.setTagValue(FallbackReason, reason)
          if (
            CometConf.invalidValue(conf).isEmpty &&
            CometConf.EXPLAIN_FALLBACK_ENABLED.get(conf)
          ) {
            logWarning(
              s"An exchange stays with Spark's shuffle: $reason\n${exchange.simpleString(25)}"
            )
          }
          exchange
      }
  }
}

/** An exchange for the JVM writer reads rows, but Spark puts a transition to columns under every columnar node: takes
  * that away, and adds the transition to rows that a columnar child needs.
  */
object KeepRowInput extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = plan.transformUp {
    case exchange: CometShuffleExchangeExec if exchange.writer == JvmWriter =>
      exchange.child match {
        case RowToColumnarExec(rows) => exchange.copy(child = rows)
        case columns if columns.supportsColumnar =>
          exchange.copy(child = ColumnarToRowExec(columns))
        case _ => exchange
      }
  }
}

/** Gives rows to unions of equally partitioned children. A union claims the partitioning that its children have in
  * common, and operators above it rely on that, but only its row side keeps the partitions apart: its columnar side
  * appends them. Spark's exchanges hand on rows, so with them it never comes to that.
  */
object UnionOfRows extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = plan.transformDown {
    case ColumnarToRowExec(union: UnionExec)
        if !union.outputPartitioning.isInstanceOf[UnknownPartitioning] =>
      union.withNewChildren(union.children.map(ColumnarToRowExec(_)))
  }
}
