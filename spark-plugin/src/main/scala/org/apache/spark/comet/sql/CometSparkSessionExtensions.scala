package org.apache.spark.comet.sql

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}

/** Puts our exchange into plans. Adaptive execution needs it there before query stages are made, since a stage must keep
  * the exchange that it was made for; other plans get it by the columnar rule.
  */
class CometSparkSessionExtensions extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectQueryStagePrepRule(_ => ReplaceShuffleExchanges)
    extensions.injectColumnar(_ => CometColumnarRule)
  }
}

/** Swaps exchanges in plans without adaptive execution, and corrects the transitions that Spark has put around ours. */
object CometColumnarRule extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = ReplaceShuffleExchanges
  override def postColumnarTransitions: Rule[SparkPlan] = CorrectTransitions
}

/** Rows where our exchange reads, and below unions that must keep their partitions. In this order: the first may put a
  * transition over a union.
  */
private object CorrectTransitions extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = NativeRows(UnionOfRows(KeepRowInput(plan)))
}
