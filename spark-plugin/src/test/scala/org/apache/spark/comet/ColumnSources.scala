package org.apache.spark.comet

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{RowToColumnarExec, SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** The child's rows as batches: operators that hand on columns, of each kind that Spark has. */
case class Columns(child: LogicalPlan, kind: ColumnKind) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): Columns =
    copy(child = newChild)
}

sealed abstract class ColumnKind(val name: String, val confs: (String, String)*) {

  /** Whether Spark can put values of the type into such columns. */
  def supports(dataType: DataType): Boolean
}

object ColumnKind {
  private val OffHeap = "spark.sql.columnVector.offheap.enabled"

  // What Spark's conversion of rows leaves out.
  private def convertible(dataType: DataType): Boolean = !dataType.existsRecursively {
    case NullType | _: TimeType | _: UserDefinedType[_] => true
    case string: StringType => string != StringType
    case _ => false
  }

  case object OffHeapVectors extends ColumnKind("off-heap vectors", OffHeap -> "true") {
    override def supports(dataType: DataType): Boolean = convertible(dataType)
  }

  case object OnHeapVectors extends ColumnKind("on-heap vectors", OffHeap -> "false") {
    override def supports(dataType: DataType): Boolean = convertible(dataType)
  }

  case object ArrowVectors extends ColumnKind("Arrow vectors") {
    // Arrow's intervals have nanoseconds, which the microseconds of random ones overflow; Spark cannot read all of the
    // structs and variants that it writes.
    override def supports(dataType: DataType): Boolean = !dataType.existsRecursively {
      case CalendarIntervalType | VariantType | _: StructType | _: UserDefinedType[_] => true
      case _ => false
    }
  }
}

/** Plans [[Columns]]. */
object ColumnsStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case Columns(child, ColumnKind.ArrowVectors) => ArrowColumnsExec(planLater(child)) :: Nil
    case Columns(child, _) => RowToColumnarExec(planLater(child)) :: Nil
    case _ => Nil
  }

  def install(session: SparkSession): Unit =
    session.experimental.extraStrategies = Seq(ColumnsStrategy)
}

/** Batches over Arrow vectors that are written anew for each batch, as Spark's Arrow readers do it. */
case class ArrowColumnsExec(child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def supportsColumnar: Boolean = true
  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("columns only")
  override protected def withNewChildInternal(newChild: SparkPlan): ArrowColumnsExec =
    copy(child = newChild)

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val schema = this.schema
    child.execute().mapPartitions { rows =>
      val writer = ArrowWriter.create(schema, "UTC", false, false)
      val vectors = writer.root.getFieldVectors.asScala
        .map(new ArrowColumnVector(_): ColumnVector).toArray
      val batch = new ColumnarBatch(vectors)
      TaskContext.get().addTaskCompletionListener[Unit](_ => writer.root.close())
      rows.grouped(ArrowColumnsExec.RowsPerBatch).map { group =>
        writer.reset()
        group.foreach(writer.write)
        writer.finish()
        batch.setNumRows(group.length)
        batch
      }
    }
  }
}

object ArrowColumnsExec {
  val RowsPerBatch = 50
}
