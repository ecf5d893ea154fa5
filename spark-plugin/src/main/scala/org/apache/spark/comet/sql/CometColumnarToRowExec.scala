package org.apache.spark.comet.sql

import org.apache.spark.TaskContext
import org.apache.spark.comet.vector.NativeRowIterator
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{ColumnarToRowTransition, SparkPlan}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/** What Spark's `ColumnarToRowExec` is, for batches of our exchange: UnsafeRows are made from the decoded columns in
  * native code. It generates no code, since it hands on whole rows; [[NativeRows]] says where that pays.
  */
case class CometColumnarToRowExec(child: SparkPlan) extends ColumnarToRowTransition {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numInputBatches" -> SQLMetrics.createMetric(sparkContext, "number of input batches")
  )

  override protected def doExecute(): RDD[InternalRow] = {
    val numOutputRows = longMetric("numOutputRows")
    val numInputBatches = longMetric("numInputBatches")
    val fields = output.length
    child.executeColumnar().mapPartitionsInternal { batches =>
      new NativeRowIterator(
        batches,
        fields,
        batch => {
          numInputBatches += 1
          numOutputRows += batch.numRows()
        },
        TaskContext.get()
      )
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): CometColumnarToRowExec =
    copy(child = newChild)
}
