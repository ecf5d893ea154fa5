package org.apache.spark.comet.sql

import org.apache.spark.comet.CometConf
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{
  CodegenSupport,
  ColumnarToRowExec,
  SortExec,
  SparkPlan,
  UnionExec,
  WholeStageCodegenExec
}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}

/** Has rows made in native code where an operator right above our exchange takes whole rows. Where generated code reads
  * columns into variables, Spark's own transition is faster: it touches no column that is not read, and writes none.
  */
object NativeRows extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (CometConf.invalidValue(conf).isEmpty && CometConf.COLUMNAR_TO_ROW_ENABLED.get(conf)) {
      // Who takes the rows of the whole plan, such as a collect or another stage, takes them as they are.
      makeNative(plan.transformUp {
        case parent if parent.children.exists(c => isOurs(c) && takesWholeRows(parent, c)) =>
          parent.mapChildren(makeNative)
      })
    } else {
      plan
    }

  private def makeNative(plan: SparkPlan): SparkPlan = plan match {
    case ColumnarToRowExec(child) if isOurs(plan) => CometColumnarToRowExec(child)
    case other => other
  }

  private def isOurs(plan: SparkPlan): Boolean = plan match {
    // Rows without columns are only counted.
    case ColumnarToRowExec(child) => child.output.nonEmpty && readsExchange(child)
    case _ => false
  }

  private def readsExchange(plan: SparkPlan): Boolean = plan match {
    case _: CometShuffleExchangeExec => true
    case AQEShuffleReadExec(child, _) => readsExchange(child)
    case stage: ShuffleQueryStageExec => readsExchange(stage.plan)
    case ReusedExchangeExec(_, child) => readsExchange(child)
    // It hands its children's batches on.
    case union: UnionExec => union.children.forall(readsExchange)
    case _ => false
  }

  private def takesWholeRows(parent: SparkPlan, child: SparkPlan): Boolean = parent match {
    case _: SortExec => true
    // Spark compiles the children of these joins on their own.
    case _: SortMergeJoinExec | _: ShuffledHashJoinExec => true
    case generated: CodegenSupport if generated.supportCodegen =>
      !conf.wholeStageEnabled || WholeStageCodegenExec.isTooManyFields(conf, child.schema)
    case _ => true
  }
}
