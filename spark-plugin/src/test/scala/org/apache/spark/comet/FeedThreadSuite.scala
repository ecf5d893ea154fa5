package org.apache.spark.comet

import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch}

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.functions.col

/** Threads that feed a script or a pipe may read a shuffle beyond the end of their task. */
class FeedThreadSuite extends CometTestBase {

  test("a pipe whose process reads one line only") {
    withComet() { session =>
      val rows = session.range(0, 300000, 1, 2)
        .select(col("id"), col("id").cast("string").as("text"))
        .repartition(6, col("id"))
      (1 to 5).foreach { _ =>
        val lines = rows.queryExecution.toRdd.map(_.getUTF8String(1).toString).pipe("head -n 1")
        assert(lines.collect().length === 6)
      }
      assertComet(rows)
    }
  }

  test("a script whose output is wanted for three rows only") {
    withComet() { session =>
      session.range(0, 300000, 1, 2).selectExpr("id", "cast(id as string) as text")
        .createOrReplaceTempView("numbers")
      (1 to 5).foreach { _ =>
        val lines = session.sql(
          "select transform(id, text) using 'cat' as (a, b) from " +
            "(select * from numbers distribute by id)"
        )
        assert(lines.limit(3).collect().length === 3)
      }
    }
  }
  for (
    (how, confs) <- Seq(
      "native rows" -> Nil,
      "rows of generated code" -> Seq("spark.comet.columnarToRow.enabled" -> "false"),
      "rows of batches" -> Seq(
        "spark.comet.columnarToRow.enabled" -> "false",
        "spark.sql.codegen.wholeStage" -> "false"
      )
    )
  )
    test(s"a thread goes on with a batch that the task began: $how") {
      withComet(confs: _*) { session =>
        val rows = session.range(0, 40000, 1, 1)
          .selectExpr("id", "repeat(cast(id as string), 20) as text")
          .repartition(2, col("id"))
        val reads = rows.queryExecution.toRdd.mapPartitions(FeedThreadSuite.readOn)
        assert(reads.count() === 2)
        val threads = FeedThreadSuite.threads.asScala.toSeq
        threads.foreach(_.join())
        FeedThreadSuite.threads.clear()
        assert(threads.map(_.problem) === Seq(None, None))
        assertComet(rows)
      }
    }
}

private object FeedThreadSuite {

  val threads = new ConcurrentLinkedQueue[FeedThread]

  /** As a script does it: the task looks whether there are rows, another thread reads them, and the task ends. */
  def readOn(rows: Iterator[InternalRow]): Iterator[Int] = {
    assert(rows.hasNext)
    val thread = new FeedThread(rows, TaskContext.get())
    threads.add(thread)
    thread.start()
    thread.begun.await()
    Iterator(1)
  }

  /** Reads on when the task has ended. */
  final class FeedThread(rows: Iterator[InternalRow], context: TaskContext) extends Thread {

    val begun = new CountDownLatch(1)
    @volatile var problem: Option[String] = Some("it has not ended")

    override def run(): Unit =
      try {
        check(rows.take(10))
        begun.countDown()
        while (!context.isCompleted())
          Thread.sleep(10)
        // The listeners of the task's end are called now.
        Thread.sleep(500)
        check(rows)
        problem = None
      } catch {
        case e: Throwable => problem = Some(e.toString)
      } finally begun.countDown()

    private def check(some: Iterator[InternalRow]): Unit = some.foreach { row =>
      val (id, text) = (row.getLong(0), row.getUTF8String(1).toString)
      if (text != id.toString * 20) {
        throw new IllegalStateException(s"$text of $id")
      }
    }
  }
}
