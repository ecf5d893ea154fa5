package org.apache.spark.comet

import java.io.{File, RandomAccessFile}
import java.nio.ByteBuffer
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.scheduler.{SparkListener, SparkListenerStageSubmitted}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions.col

/** Damaged map output makes its map stage run again; it never gives wrong rows. */
class CorruptionSuite extends CometTestBase {
  import CometTestBase._

  private val confs = Seq(
    Aqe -> "false",
    "spark.stage.maxConsecutiveAttempts" -> "4",
    "spark.sql.shuffle.partitions" -> "4"
  )

  private def dataFiles(): Seq[File] = localFiles().filter(_.getName.endsWith(".data"))

  /** Shuffles, damages what was written, reads it, and compares with the rows that went in. */
  private def readsRightAfter(damage: File => Unit): Unit =
    withComet(confs: _*) { session =>
      val rows = shuffled(session)
      assert(rows.count() === 20000)
      val stages = countStages(session)
      dataFiles().foreach(damage)
      assert(rows.map(_.getLong(0)).collect().toSeq.sorted === (0L until 20000L))
      eventually(assert(stages.get() > 1, "the map stage did not run again"))
    }

  private def shuffled(session: SparkSession) = {
    val exchanged = session.range(0, 20000, 1, 2)
      .select(col("id"), col("id").cast("string").as("text"))
      .repartition(4, col("id"))
    assertComet(exchanged)
    exchanged.queryExecution.toRdd.map(_.copy())
  }

  private def countStages(session: SparkSession): AtomicInteger = {
    val submitted = new AtomicInteger()
    session.sparkContext.addSparkListener(new SparkListener {
      override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
        submitted.incrementAndGet()
    })
    submitted
  }

  private def change(file: File, position: Long): Unit = {
    val access = new RandomAccessFile(file, "rw")
    try {
      access.seek(position)
      val byte = access.read()
      access.seek(position)
      access.write(byte ^ 0x10)
    } finally access.close()
  }

  private def truncate(file: File, length: Long): Unit = {
    val access = new RandomAccessFile(file, "rw")
    try access.setLength(length)
    finally access.close()
  }

  /** Starts of the partitions in a data file, and its end. */
  private def offsets(data: File): Seq[Long] = {
    val index = new File(data.getPath.replace(".data", ".index")) match {
      case beside if beside.exists() => beside
      case other => localFiles().find(_.getName == other.getName).get
    }
    val bytes = ByteBuffer.wrap(java.nio.file.Files.readAllBytes(index.toPath))
    Seq.fill(bytes.remaining() / 8)(bytes.getLong)
  }

  test("one changed bit in the payload") {
    readsRightAfter(file => change(file, file.length() / 2))
  }

  test("one changed bit in a header") {
    // Every field of the first header, one application each, would take long: its flags and its row count.
    readsRightAfter(file => change(file, 16))
  }

  test("a length in the header that is larger than the partition") {
    readsRightAfter(file => change(file, 36))
  }

  test("a file that ends in the middle of a block") {
    readsRightAfter(file => truncate(file, file.length() - 7))
  }

  test("a file that ends where a partition begins") {
    readsRightAfter { file =>
      val starts = offsets(file)
      truncate(file, starts(starts.length - 2))
    }
  }

  test("a file of zeros") {
    readsRightAfter { file =>
      val length = file.length()
      truncate(file, 0)
      truncate(file, length)
    }
  }

  test("partitions that are fetched as one block, cut where one of them ends") {
    withComet(
      Aqe -> "true",
      "spark.sql.adaptive.coalescePartitions.parallelismFirst" -> "false",
      "spark.stage.maxConsecutiveAttempts" -> "4",
      "spark.sql.shuffle.partitions" -> "8"
    ) { session =>
      val stages = countStages(session)
      var damaged = 0
      // Damages the output of the map stage before the reducer that reads all eight partitions starts.
      session.sparkContext.addSparkListener(new SparkListener {
        override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit = synchronized {
          if (damaged == 0 && dataFiles().length == 2) {
            dataFiles().foreach { file =>
              val starts = offsets(file)
              truncate(file, starts(starts.length - 3))
              damaged += 1
            }
          }
        }
      })
      val df = session.range(0, 20000, 1, 2).repartition(col("id"))
      val rdd = df.queryExecution.executedPlan.execute()
      assert(rdd.getNumPartitions === 1)
      assert(rdd.map(_.getLong(0)).collect().toSeq.sorted === (0L until 20000L))
      assert(damaged === 2)
      eventually(assert(stages.get() > 2, "the map stage did not run again"))
    }
  }
}
