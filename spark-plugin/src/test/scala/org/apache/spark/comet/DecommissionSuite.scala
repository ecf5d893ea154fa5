package org.apache.spark.comet

import java.io.File
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils
import org.scalatest.time.{Millis, Seconds, Span}

import org.apache.spark.{MapOutputTrackerMaster, SparkContext, SparkEnv, TestUtils}
import org.apache.spark.scheduler._
import org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.col
import org.apache.spark.storage.{FallbackStorage, ShuffleDataBlockId}
import org.apache.spark.util.Utils

/** Executors that leave hand their map outputs on: what Spark's BlockManagerDecommissionIntegrationSuite tests with an
  * RDD ("SPARK-46957"), with columnar blocks. Executors are JVMs of their own that have our classes from the jar alone.
  */
class DecommissionSuite extends CometTestBase {
  import CometTestBase._

  // Executors start, and leave.
  implicit override def patienceConfig: PatienceConfig =
    PatienceConfig(Span(90, Seconds), Span(50, Millis))

  private val mappers = 6

  private val confs = Seq(
    "spark.master" -> "local-cluster[2,2,1024]",
    "spark.jars" -> System.getProperty("comet.test.jar"),
    "spark.decommission.enabled" -> "true",
    "spark.storage.decommission.enabled" -> "true",
    "spark.storage.decommission.shuffleBlocks.enabled" -> "true",
    // How often an executor asks itself whether it may leave.
    "spark.storage.decommission.replicationReattemptInterval" -> "1s",
    // Spark's scripts would set it.
    "spark.executorEnv.SPARK_SCALA_VERSION" -> scala.util.Properties.versionNumberString.split('.')
      .take(2).mkString("."),
    // Tests of Spark's SQL let go of a query's shuffles at its end.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled" -> "false",
    "spark.sql.classic.shuffleDependency.skipMigration.enabled" -> "false",
    "spark.task.maxFailures" -> "4",
    "spark.shuffle.sort.bypassMergeThreshold" -> "10",
    Aqe -> "false"
  )

  /** An application on two executors. */
  private def withCluster(more: (String, String)*)(body: (SparkSession, Events) => Unit): Unit = {
    val home = sys.env.getOrElse("SPARK_HOME", fail("SPARK_HOME is not set; run scripts/test"))
    // Executors of an application under test look for the build of Spark.
    val testing = System.clearProperty("spark.testing")
    try
      withComet(confs ++ more: _*) { session =>
        TestUtils.waitUntilExecutorsUp(session.sparkContext, 2, 60000)
        val events = new Events
        session.sparkContext.addSparkListener(events)
        body(session, events)
      }
    finally {
      System.setProperty("spark.testing", testing)
      Utils.deleteRecursively(new File(home, "work"))
    }
  }

  /** What the scheduler and the block managers tell. */
  private class Events extends SparkListener {
    val removed = new ConcurrentLinkedQueue[String]
    val stageTasks = new ConcurrentLinkedQueue[Int]
    val migrated = new ConcurrentLinkedQueue[ShuffleDataBlockId]

    override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit =
      removed.add(event.executorId)
    override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
      stageTasks.add(event.stageInfo.numTasks)
    override def onBlockUpdated(event: SparkListenerBlockUpdated): Unit =
      event.blockUpdatedInfo.blockId match {
        case data: ShuffleDataBlockId => migrated.add(data)
        case _ =>
      }
  }

  private def rows(session: SparkSession): DataFrame =
    session.range(0, 60000, 1, mappers)
      .selectExpr("id", "cast(id % 7 as string) as s", "array(id, id + 1) as a")

  /** A query whose exchange takes rows or batches, to so many partitions. */
  private def query(session: SparkSession, native: Boolean, partitions: Int): DataFrame = {
    val input =
      if (native) {
        val folder = s"${session.conf.get("spark.sql.warehouse.dir")}/rows"
        if (!new File(new java.net.URI(folder).getPath).exists())
          rows(session).write.parquet(folder)
        session.read.parquet(folder)
      } else {
        rows(session)
      }
    input.repartition(partitions, col("id")).asInstanceOf[DataFrame]
  }

  private def sortedRows(df: DataFrame): Seq[String] = df.collect().map(_.toString).sorted.toSeq

  /** Those of all executors: workers choose the folders. */
  private def shuffleFiles(): Seq[String] = {
    val files = FileUtils.listFiles(new File(System.getProperty("java.io.tmpdir")), null, true)
    files.asScala.map(_.getName).filter(_.startsWith("shuffle_")).toSeq
  }

  /** Executors that have map outputs. */
  private def locations(shuffleId: Int): Set[String] =
    SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]
      .shuffleStatuses(shuffleId).withMapStatuses(_.map(_.location.executorId).toSet)

  private def decommission(sc: SparkContext, executor: String, replace: Boolean): Unit =
    sc.schedulerBackend.asInstanceOf[StandaloneSchedulerBackend].decommissionExecutor(
      executor,
      ExecutorDecommissionInfo("test"),
      adjustTargetNumExecutors = !replace
    )

  for ((writer, partitions) <- Seq("native" -> 8, "bypass" -> 8, "sort" -> 201))
    test(s"map outputs move to another executor, are read there, and are deleted: $writer") {
      val native = writer == "native"
      val expected = withSpark()(session => sortedRows(query(session, native, partitions)))
      withCluster() { (session, events) =>
        val sc = session.sparkContext
        val df = query(session, native, partitions)
        assert(sortedRows(df) === expected)
        val exchange = assertComet(df).head
        assert(exchange.nodeName === s"CometShuffleExchange(${if (native) "native" else "jvm"})")
        val leaving = locations(exchange.shuffleId).head
        decommission(sc, leaving, replace = false)
        eventually(assert(events.removed.contains(leaving)))
        // Data and index of all map tasks lie on the executor that is left; checksums don't move.
        assert(events.migrated.asScala.exists(_.shuffleId == exchange.shuffleId))
        assert(locations(exchange.shuffleId) === sc.getExecutorIds().toSet - leaving)
        for (suffix <- Seq(".data", ".index"))
          eventually(assert(shuffleFiles().count(_.endsWith(suffix)) === exchange.numMappers))

        events.stageTasks.clear()
        assert(sortedRows(df) === expected)
        // The map stage did not run again.
        eventually(assert(events.stageTasks.asScala.toSeq === Seq(partitions)))

        sc.shuffleDriverComponents.removeShuffle(exchange.shuffleId, true)
        eventually(assert(shuffleFiles() === Nil))
      }
    }

  test("map outputs of the last executor go to the fallback storage, and are read from there") {
    val expected = withSpark()(session => sortedRows(query(session, native = false, 8)))
    val storage = temporaryFolder()
    val fallback = "spark.storage.decommission.fallbackStorage.path" -> s"${storage.toUri}"
    try
      withCluster(fallback) { (session, events) =>
        val sc = session.sparkContext
        val df = query(session, native = false, 8)
        assert(sortedRows(df) === expected)
        val exchange = assertComet(df).head
        val before = sc.getExecutorIds()
        before.foreach(decommission(sc, _, replace = true))
        eventually(assert(events.removed.asScala.toSet === before.toSet))
        assert(locations(exchange.shuffleId) === Set(
          FallbackStorage.FALLBACK_BLOCK_MANAGER_ID.executorId
        ))
        events.stageTasks.clear()
        assert(sortedRows(df) === expected)
        eventually(assert(events.stageTasks.asScala.toSeq === Seq(8)))
      }
    finally Utils.deleteRecursively(storage.toFile)
  }
}
