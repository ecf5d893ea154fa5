package org.apache.spark.comet

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Repartition, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Memory that the native writer gives back when another part of its task needs it. */
class NativeSpillSuite extends CometTestBase {
  import CometTestBase._
  import NativeSpillSuite._

  for (otherThread <- Seq(false, true))
    test(s"another consumer of the task takes memory back, in another thread: $otherThread") {
      withComet(OffHeapSize -> "64m", "spark.master" -> "local[1]", Aqe -> "false") { session =>
        session.experimental.extraStrategies = Seq(HungryStrategy, ColumnsStrategy)
        val rows =
          session.range(0, 200000, 1, 1).selectExpr("id", "repeat(cast(id as string), 20) t")
        val batches = Columns(rows.queryExecution.analyzed, ColumnKind.OffHeapVectors)
        val df =
          dataFrame(session, Repartition(7, shuffle = true, Hungry(batches, otherThread)))
        taken.set(0)
        val ids = df.queryExecution.toRdd.map(_.getLong(0)).collect().sorted
        assert(ids.toSeq === (0L until 200000L))
        val exchange = assertComet(df).head
        assert(exchange.nodeName === "CometShuffleExchange(native)")
        assert(taken.get === Wanted)
        assert(exchange.metrics("spillCount").value > 0)
        assert(exchange.metrics("memorySpilled").value > 0)
      }
    }
}

object NativeSpillSuite {

  /** More than is free beside what is staged. */
  val Wanted: Long = 60L << 20

  val taken = new AtomicLong

  private class Consumer(memoryManager: TaskMemoryManager)
      extends MemoryConsumer(memoryManager, MemoryMode.OFF_HEAP) {
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0
  }

  case class Hungry(child: LogicalPlan, otherThread: Boolean) extends UnaryNode {
    override def output: Seq[Attribute] = child.output
    override protected def withNewChildInternal(newChild: LogicalPlan): Hungry =
      copy(child = newChild)
  }

  object HungryStrategy extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case Hungry(child, otherThread) => HungryExec(planLater(child), otherThread) :: Nil
      case _ => Nil
    }
  }

  /** Needs nearly all memory of the task for a moment, while it makes one of its batches. */
  case class HungryExec(child: SparkPlan, otherThread: Boolean) extends UnaryExecNode {
    override def output: Seq[Attribute] = child.output
    override def supportsColumnar: Boolean = true
    override protected def doExecute(): RDD[InternalRow] =
      throw new UnsupportedOperationException("columns only")
    override protected def withNewChildInternal(newChild: SparkPlan): HungryExec =
      copy(child = newChild)

    override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
      val inOtherThread = otherThread
      child.executeColumnar().mapPartitions { batches =>
        val consumer = new Consumer(TaskContext.get().taskMemoryManager())
        batches.zipWithIndex.map { case (batch, i) =>
          if (i == 15) {
            if (inOtherThread) {
              val thread = new Thread(() => eat(consumer))
              thread.start()
              thread.join()
            } else {
              eat(consumer)
            }
          }
          batch
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
