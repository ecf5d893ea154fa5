package org.apache.spark.comet

import java.util.concurrent.atomic.AtomicLong

import scala.reflect.ClassTag

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, RepartitionByExpression, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Memory that a writer gives back when another part of its task needs it. */
class SpillForOthersSuite extends CometTestBase {
  import CometTestBase._
  import SpillForOthersSuite._

  private val writers = Seq("native" -> "10000", "bypass" -> "10000", "sort" -> "1")

  for (otherThread <- Seq(false, true); (writer, bypassThreshold) <- writers)
    test(
      s"another consumer of the task takes memory back from $writer, in its own thread: $otherThread"
    ) {
      withComet(
        OffHeapSize -> "64m",
        "spark.master" -> "local[1]",
        Aqe -> "false",
        "spark.shuffle.sort.bypassMergeThreshold" -> bypassThreshold
      ) { session =>
        session.experimental.extraStrategies = Seq(HungryStrategy, ColumnsStrategy)
        val rows =
          session.range(0, 200000, 1, 1).selectExpr("id", "repeat(cast(id as string), 20) t")
        val child =
          if (writer == "native") Columns(rows.queryExecution.analyzed, ColumnKind.OffHeapVectors)
          else rows.queryExecution.analyzed
        val hungry = Hungry(child, otherThread, columnar = writer == "native")
        // A round robin of rows would sort them below the exchange first.
        val df = dataFrame(
          session,
          RepartitionByExpression(Seq(child.output.head), hungry, Some(7))
        )
        taken.set(0)
        val ids = df.queryExecution.toRdd.map(_.getLong(0)).collect().sorted
        assert(ids.toSeq === (0L until 200000L))
        val exchange = assertComet(df).head
        assert((exchange.nodeName == "CometShuffleExchange(native)") === (writer == "native"))
        assert(taken.get === Wanted)
        assert(exchange.metrics("spillCount").value > 0)
        assert(exchange.metrics("spillSize").value > 0)
      }
    }
}

object SpillForOthersSuite {

  /** More than is free beside what is staged. */
  val Wanted: Long = 60L << 20

  val taken = new AtomicLong

  private class Consumer(memoryManager: TaskMemoryManager)
      extends MemoryConsumer(memoryManager, MemoryMode.OFF_HEAP) {
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0
  }

  case class Hungry(child: LogicalPlan, otherThread: Boolean, columnar: Boolean)
      extends UnaryNode {
    override def output: Seq[Attribute] = child.output
    override protected def withNewChildInternal(newChild: LogicalPlan): Hungry =
      copy(child = newChild)
  }

  object HungryStrategy extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case Hungry(child, otherThread, columnar) =>
        HungryExec(planLater(child), otherThread, columnar) :: Nil
      case _ => Nil
    }
  }

  /** Needs nearly all memory of the task for a moment, while it makes one of its batches, or rows. */
  case class HungryExec(child: SparkPlan, otherThread: Boolean, columnar: Boolean)
      extends UnaryExecNode {
    override def output: Seq[Attribute] = child.output
    override def supportsColumnar: Boolean = columnar
    override protected def doExecute(): RDD[InternalRow] = eatAt(child.execute(), 150000)
    override protected def withNewChildInternal(newChild: SparkPlan): HungryExec =
      copy(child = newChild)

    override protected def doExecuteColumnar(): RDD[ColumnarBatch] =
      eatAt(child.executeColumnar(), 15)

    private def eatAt[T: ClassTag](input: RDD[T], place: Int): RDD[T] = {
      val inOtherThread = otherThread
      input.mapPartitions { items =>
        val consumer = new Consumer(TaskContext.get().taskMemoryManager())
        items.zipWithIndex.map { case (item, i) =>
          if (i == place) {
            if (inOtherThread) {
              val thread = new Thread(() => eat(consumer))
              thread.start()
              thread.join()
            } else {
              eat(consumer)
            }
          }
          item
        }
      }
    }

    private def eat(consumer: Consumer): Unit = {
      val granted = consumer.acquireMemory(Wanted)
      taken.set(granted)
      consumer.freeMemory(granted)
    }
  }
}
