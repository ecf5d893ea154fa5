package org.apache.spark.comet

import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._

import org.scalatest.BeforeAndAfterAll

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.classic.SparkSession

class TaskEndSuite extends TaskEndTests(writer = "jvm")

class NativeTaskEndSuite extends TaskEndTests(writer = "native")

class SortTaskEndSuite extends TaskEndTests(writer = "jvm") {
  override protected def confs: Seq[(String, String)] =
    Seq("spark.shuffle.sort.bypassMergeThreshold" -> "1")
}

/** However a task ends, it leaves neither memory nor files. */
abstract class TaskEndTests(writer: String) extends CometTestBase with BeforeAndAfterAll {
  import CometTestBase._
  import TaskEndTests._

  /** Options of the applications. */
  protected def confs: Seq[(String, String)] = Nil

  private val memories = Seq("in memory" -> "64m", "spilling" -> "4m")
  private val rows = 30000

  private def withApp(memory: String)(body: SparkSession => Unit): Unit =
    withComet(
      Seq(OffHeapSize -> memory, Aqe -> "false", "spark.buffer.pageSize" -> "256k") ++ confs: _*
    ) { session =>
      ColumnsStrategy.install(session)
      val wait = (id: Long) => {
        if (id == HoldAt) {
          reached.countDown()
          TimeUnit.SECONDS.sleep(60)
        }
        id
      }
      session.udf.register("wait", wait)
      session.udf.register(
        "fail",
        (id: Long) => if (id == HoldAt) throw new IllegalStateException("on purpose") else id
      )
      body(session)
      eventually(assert(running(session.sparkContext) === 0))
      assertNothingLeft()
      // The application still works.
      assert(session.range(1000).repartition(3).count() === 1000)
    }

  private def running(sc: SparkContext): Int =
    sc.statusTracker.getExecutorInfos.map(_.numRunningTasks()).sum

  private def wide(session: SparkSession, column: String): org.apache.spark.sql.DataFrame =
    session.range(0, rows, 1, 2).selectExpr(
      s"$column as id",
      "repeat(cast(id as string), 60) as text",
      "array(id, id * 2, id * 3) as numbers"
    )

  /** Rows with `function(id)` below the exchange, or above it. */
  private def query(
      session: SparkSession,
      function: String,
      below: Boolean
  ): org.apache.spark.sql.DataFrame =
    if (below) exchanged(session, wide(session, s"$function(id)"))
    else {
      exchanged(session, wide(session, "id")).selectExpr(s"$function(id) as id", "text", "numbers")
    }

  private def exchanged(
      session: SparkSession,
      df: org.apache.spark.sql.DataFrame
  ): org.apache.spark.sql.DataFrame =
    if (writer == "jvm") df.repartition(5)
    else {
      val rows = df.asInstanceOf[org.apache.spark.sql.classic.DataFrame].queryExecution.analyzed
      dataFrame(session, Columns(rows, ColumnKind.OffHeapVectors)).repartition(5)
    }

  for ((kind, memory) <- memories) {
    test(s"success, $kind") {
      withApp(memory) { session =>
        val df = query(session, "abs", below = true)
        assert(df.count() === rows)
        val classic = df.asInstanceOf[org.apache.spark.sql.classic.DataFrame]
        assert(classic.queryExecution.toRdd.count() === rows)
        assert(assertComet(classic).head.nodeName === s"CometShuffleExchange($writer)")
        val spills = assertComet(classic).map(_.metrics("spillCount").value).sum
        assert((spills > 0) === (kind == "spilling"))
      }
    }

    for ((place, below) <- Seq("writing" -> true, "reading" -> false)) {
      test(s"failure while $place, $kind") {
        withApp(memory) { session =>
          val failure = intercept[Exception](query(session, "fail", below).collect())
          assert(
            Iterator.iterate[Throwable](failure)(_.getCause).takeWhile(_ != null)
              .exists(_.toString.contains("on purpose")),
            failure
          )
        }
      }

      for (interrupt <- Seq(true, false))
        test(s"kill while $place, interrupting $interrupt, $kind") {
          // Without an interrupt the sleep goes on, so it must be short.
          withApp(memory) { session =>
            val sc = session.sparkContext
            reached = new CountDownLatch(1)
            if (!interrupt) {
              session.udf.register(
                "wait",
                (id: Long) => {
                  if (id == HoldAt) {
                    reached.countDown()
                    TimeUnit.SECONDS.sleep(2)
                  }
                  id
                }
              )
            }
            val ends = new TaskEnds
            sc.addSparkListener(ends)
            val job = Future {
              sc.setJobGroup("killed", "to be killed", interrupt)
              try query(session, "wait", below).collect()
              finally sc.clearJobGroup()
            }
            assert(reached.await(30, TimeUnit.SECONDS))
            sc.cancelJobGroup("killed")
            val failure = intercept[Exception](Await.result(job, 30.seconds))
            assert(failure.getMessage.contains("cancelled"), failure)
            eventually(assert(running(sc) === 0))
            // A cancelled job counts as ended before its last task does.
            eventually(assert(ends.kinds.contains("TaskKilled"), ends.kinds))
            assert(!ends.kinds.contains("ExceptionFailure"), ends.kinds)
          }
        }
    }

    test(s"limit above the exchange, $kind") {
      withApp(memory) { session =>
        assert(query(session, "abs", below = false).limit(5).collect().length === 5)
        // Two tasks read at a time, and both stop early.
        val some = query(session, "abs", below = false).limit(10).selectExpr("id").collect()
        assert(some.length === 10)
      }
    }

    test(s"files of a shuffle, and their end, $kind") {
      withApp(memory) { session =>
        val df = query(session, "abs", below = true)
          .asInstanceOf[org.apache.spark.sql.classic.DataFrame]
        assert(df.queryExecution.toRdd.count() === rows)
        val id = assertComet(df).head.shuffleId
        val names = localFiles().map(_.getName).filter(_.startsWith(s"shuffle_${id}_"))
        val kinds = names.groupBy(_.split('.').drop(1).head).map { case (k, v) => k -> v.length }
        assert(kinds === Map("data" -> 2, "index" -> 2, "checksum" -> 2))
        SparkEnv.get.shuffleManager.unregisterShuffle(id)
        assert(!localFiles().exists(_.getName.startsWith(s"shuffle_${id}_")))
      }
    }
  }
}

object TaskEndTests {
  val HoldAt = 14000L

  // Counted down in a task, which runs in this JVM.
  @volatile var reached = new CountDownLatch(1)

  class TaskEnds extends SparkListener {
    private var seen = Seq.empty[String]
    override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
      seen = seen :+ end.reason.getClass.getSimpleName
    }
    def kinds: Seq[String] = synchronized(seen)
  }
}
