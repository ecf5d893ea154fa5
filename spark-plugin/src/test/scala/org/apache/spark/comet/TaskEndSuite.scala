package org.apache.spark.comet

import java.io.IOException
import java.nio.ByteBuffer

import org.apache.spark.{SparkEnv, SparkException}
import org.apache.spark.comet.shuffle.SpillFile
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.{col, udf}

/** However a task ends, it leaves no memory charged and no file of ours; `withComet` checks both. */
class TaskEndSuite extends CometTestBase {
  import CometTestBase._

  // Enough rows for full batches, waiting blocks and, in little memory, spills.
  private val rows = 200000L
  private val memories = Seq("512m", "4m")

  private def input(session: SparkSession): DataFrame =
    session.range(0, rows, 1, 4).select(col("id"), col("id").cast("string").as("text")).toDF()

  private def shuffled(df: DataFrame): DataFrame = df.repartition(16, col("id"))

  for (memory <- memories) {
    test(s"success, off-heap memory $memory") {
      withComet(OffHeapSize -> memory) { session =>
        assert(shuffled(input(session)).collect().length === rows)
      }
    }

    test(s"failure while writing, off-heap memory $memory") {
      withComet(OffHeapSize -> memory) { session =>
        val explode = udf { (id: Long) =>
          if (id % 50000 == 49000) throw new IllegalStateException("on purpose") else id
        }
        val failing = input(session).select(explode(col("id")).as("id"), col("text"))
        val failure = intercept[SparkException](shuffled(failing).collect())
        assert(rootMessages(failure).exists(_.contains("on purpose")))
      }
    }

    test(s"failure while reading, off-heap memory $memory") {
      withComet(OffHeapSize -> memory) { session =>
        val failure = intercept[SparkException] {
          shuffled(input(session)).queryExecution.toRdd.foreachPartition { rows =>
            if (rows.hasNext) throw new IllegalStateException("on purpose")
          }
        }
        assert(rootMessages(failure).exists(_.contains("on purpose")))
      }
    }

    test(s"kill while writing, off-heap memory $memory") {
      withComet(OffHeapSize -> memory) { session =>
        val slow = udf { (id: Long) => if (id % 5000 == 0) Thread.sleep(100); id }
        killed(session) {
          shuffled(input(session).select(slow(col("id")).as("id"), col("text"))).collect()
        }
      }
    }

    test(s"kill while reading, off-heap memory $memory") {
      withComet(OffHeapSize -> memory) { session =>
        killed(session) {
          shuffled(input(session)).queryExecution.toRdd.foreach { row =>
            if (row.getLong(0) % 1000 == 0) Thread.sleep(100)
          }
        }
      }
    }

    test(s"a reader that stops early, off-heap memory $memory") {
      withComet(OffHeapSize -> memory) { session =>
        assert(shuffled(input(session)).limit(3).collect().length === 3)
        val firsts =
          shuffled(input(session)).queryExecution.toRdd.mapPartitions(_.take(1).map(_ => 1))
        assert(firsts.sum() === 16)
      }
    }
  }

  test("a spill file that is cut is an IOException that names its path") {
    withComet() { session =>
      val env = SparkEnv.get
      val folders = env.blockManager.diskBlockManager.localDirs
      val spill = new SpillFile(env.blockManager.diskBlockManager, env.serializerManager)
      spill.append(ByteBuffer.wrap(Array[Byte](1)))
      val failure = intercept[IOException] {
        spill.read(0, 2, (_: ByteBuffer) => ())
      }
      assert(folders.exists(folder => failure.getMessage.contains(folder.getPath)))
      spill.close()
    }
  }

  /** Runs `action` until some of its tasks have started, and cancels its job. */
  private def killed(session: SparkSession)(action: => Unit): Unit = {
    val sc = session.sparkContext
    val canceller = new Thread(() => {
      while (sc.statusTracker.getActiveJobIds().isEmpty) Thread.sleep(10)
      Thread.sleep(1000)
      sc.cancelAllJobs()
    })
    canceller.start()
    val failure = intercept[Exception](action)
    canceller.join()
    assert(rootMessages(failure).exists(_.toLowerCase.contains("cancel")), failure)
    eventually(assert(sc.statusTracker.getExecutorInfos.map(_.numRunningTasks()).sum === 0))
  }

  private def rootMessages(failure: Throwable): Seq[String] =
    Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).map(f => String.valueOf(f.getMessage))
      .toSeq
}
