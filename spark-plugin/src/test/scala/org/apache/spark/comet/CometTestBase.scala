package org.apache.spark.comet

import java.io.File
import java.nio.file.{Files, Path, Paths}
import java.util.UUID

import scala.collection.mutable

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{LogEvent, LoggerContext}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.Utils

/** Applications with and without the plugin, one at a time, and what the suites ask of them. */
trait CometTestBase extends AnyFunSuite with AdaptiveSparkPlanHelper with Eventually {
  import CometTestBase._

  implicit override def patienceConfig: PatienceConfig =
    PatienceConfig(Span(20, Seconds), Span(50, Millis))

  /** A fresh application. It must leave no memory in use and no temporary file, whatever ran. */
  def withApplication[T](confs: (String, String)*)(body: SparkSession => T): T = {
    val session = start(confs: _*)
    try {
      val result = body(session)
      assertNothingLeft()
      result
    } finally stop(session)
  }

  def withSpark[T](confs: (String, String)*)(body: SparkSession => T): T =
    withApplication(confs: _*)(body)

  def withComet[T](confs: (String, String)*)(body: SparkSession => T): T =
    withApplication(pluginConfs ++ confs: _*)(body)

  def assertNothingLeft(): Unit = eventually {
    assert(SparkEnv.get.memoryManager.executionMemoryUsed === 0)
    assert(strayFiles() === Nil)
  }

  def withSqlConf[T](session: SparkSession, confs: (String, String)*)(body: => T): T = {
    val before = confs.map { case (key, _) => key -> session.conf.getOption(key) }
    confs.foreach { case (key, value) => session.conf.set(key, value) }
    try body
    finally
      before.foreach {
        case (key, Some(value)) => session.conf.set(key, value)
        case (key, None) => session.conf.unset(key)
      }
  }

  def exchanges(plan: SparkPlan): Seq[ShuffleExchangeLike] =
    collectWithSubqueries(plan) { case exchange: ShuffleExchangeLike => exchange }

  def cometExchanges(plan: SparkPlan): Seq[ShuffleExchangeLike] = exchanges(plan).filter(isComet)

  /** Every exchange of the plan is ours, and there is one at least. */
  def assertComet(df: DataFrame): Seq[ShuffleExchangeLike] = {
    val plan = df.queryExecution.executedPlan
    val all = exchanges(plan)
    assert(all.nonEmpty && all.forall(isComet), s"not every exchange is ours in\n$plan")
    all
  }

  def assertNotComet(df: DataFrame): Unit = {
    val plan = df.queryExecution.executedPlan
    assert(exchanges(plan).nonEmpty && cometExchanges(plan).isEmpty, plan.toString)
  }

  def assertSame[T](expected: Seq[T], actual: Seq[T]): Unit =
    CanonicalRow.difference(expected, actual).foreach(difference => fail(difference))

  /** What is logged at warning or above by loggers whose name starts with the prefix. */
  def captureLog[T](prefix: String)(body: => T): (T, Seq[LogEvent]) = {
    val appender = new LogCapture(prefix)
    appender.start()
    val context = LogManager.getContext(false).asInstanceOf[LoggerContext]
    val root = context.getConfiguration.getRootLogger
    root.addAppender(appender, Level.WARN, null)
    context.updateLoggers()
    try {
      val result = body
      (result, appender.seen)
    } finally root.removeAppender(appender.getName)
  }
}

object CometTestBase {
  val ExchangeClass = "org.apache.spark.comet.sql.CometShuffleExchangeExec"
  val ManagerClass = "org.apache.spark.comet.shuffle.CometShuffleManager"
  val ExtensionsClass = "org.apache.spark.comet.sql.CometSparkSessionExtensions"
  val PluginClass = "org.apache.spark.comet.CometPlugin"

  val Aqe = "spark.sql.adaptive.enabled"
  val Codec = "spark.comet.shuffle.compression.codec"
  val OffHeapSize = "spark.memory.offHeap.size"

  val offHeapConfs: Seq[(String, String)] =
    Seq("spark.memory.offHeap.enabled" -> "true", OffHeapSize -> "512m")

  val pluginConfs: Seq[(String, String)] = ("spark.plugins" -> PluginClass) +: offHeapConfs

  val defaultConfs: Seq[(String, String)] = Seq(
    "spark.master" -> "local[2]",
    "spark.app.name" -> "comet-test",
    "spark.ui.enabled" -> "false",
    "spark.unsafe.exceptionOnMemoryLeak" -> "true",
    "spark.sql.shuffle.partitions" -> "6",
    "spark.sql.timeType.enabled" -> "true",
    "spark.sql.codegen.wholeStage" -> "true",
    "spark.sql.session.timeZone" -> "UTC",
    "spark.task.maxFailures" -> "1"
  )

  private lazy val temporary: Path =
    Files.createDirectories(Paths.get(System.getProperty("java.io.tmpdir")))

  def temporaryFolder(): Path = Files.createTempDirectory(temporary, "comet-test-")

  def start(confs: (String, String)*): SparkSession = {
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    val conf = new SparkConf()
    (defaultConfs ++ confs).foreach { case (key, value) => conf.set(key, value) }
    if (!conf.contains("spark.local.dir")) conf.set("spark.local.dir", temporaryFolder().toString)
    if (!conf.contains("spark.sql.warehouse.dir")) {
      conf.set("spark.sql.warehouse.dir", conf.get("spark.local.dir") + "/warehouse")
    }
    SparkSession.builder().config(conf).getOrCreate()
  }

  def stop(session: SparkSession): Unit = {
    val local = session.sparkContext.getConf.get("spark.local.dir")
    session.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    Utils.deleteRecursively(new File(local))
  }

  def isComet(plan: SparkPlan): Boolean = plan.getClass.getName == ExchangeClass

  def localFiles(): Seq[File] = SparkEnv.get.blockManager.diskBlockManager.getAllFiles()

  private val shuffleFile = raw"shuffle_\d+_\d+_0\.(index|data|checksum\.\w+)".r

  /** Files in the block manager's folders that are no shuffle output, cached block or broadcast. Ours would be
    * `temp_shuffle_*`. Spark's own sorters leave a `temp_local_*` when they are killed while they spill.
    */
  def strayFiles(): Seq[String] = localFiles().map(_.getName).filterNot { name =>
    shuffleFile.matches(name) || name.startsWith("rdd_") || name.startsWith(
      "broadcast_"
    ) || name.startsWith("temp_local_") ||
    name.startsWith("taskresult_")
  }

  def dataFrame(session: SparkSession, schema: StructType, rdd: RDD[InternalRow]): DataFrame =
    SparkAccess.dataFrame(session, LogicalRDD(toAttributes(schema), rdd)(session))

  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    SparkAccess.dataFrame(session, plan)

  /** Rows made on the executors, from the seed and the partition's number. */
  def randomRows(
      session: SparkSession,
      seed: Long,
      schema: StructType,
      partitions: Int,
      rows: Int,
      fat: Boolean
  ): DataFrame = {
    val made = session.sparkContext.parallelize(0 until partitions, partitions).flatMap { p =>
      val data = new RandomData(seed * 1000 + p)
      // Some partitions are empty.
      val count = if (p % 4 == 3) 0 else rows
      Iterator.fill(count)(if (fat) data.fat(schema) else data.row(schema))
    }
    dataFrame(session, schema, made)
  }

  /** The partition of each row, and the row. */
  def placedRows(df: DataFrame): Seq[(Int, CanonicalRow.Bytes)] = {
    val schema = df.schema
    df.queryExecution.toRdd.mapPartitionsWithIndex { (partition, rows) =>
      rows.map(row => (partition, CanonicalRow.bytes(row, schema)))
    }.collect().toSeq
  }
}

/** Keeps log events by the logger's name. */
class LogCapture(prefix: String)
    extends AbstractAppender(
      s"capture-${UUID.randomUUID()}",
      null,
      null,
      true,
      Property.EMPTY_ARRAY
    ) {
  private val events = mutable.ArrayBuffer.empty[LogEvent]

  override def append(event: LogEvent): Unit = synchronized {
    if (event.getLoggerName.startsWith(prefix)) events += event.toImmutable
  }

  def seen: Seq[LogEvent] = synchronized(events.toList)
}

object LogCapture {
  def messages(events: Seq[LogEvent]): Seq[String] =
    events.map(_.getMessage.getFormattedMessage)
}
