package org.apache.spark.comet

import org.apache.logging.log4j.Level

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.execution.ExplainMode
import org.apache.spark.sql.classic.{DataFrame, SparkSession}

/** Stands for the manager of another product. */
class OtherShuffleManager(conf: org.apache.spark.SparkConf) extends SortShuffleManager(conf)

/** When the shuffle is on, and what an application that it cannot serve sees instead. */
class ActivationSuite extends CometTestBase {
  import CometTestBase._

  private def query(session: SparkSession): DataFrame = {
    val df = session.range(0, 1000, 1, 3).selectExpr("id % 10 as k").groupBy("k").count()
    val rows = df.collect().map(row => row.getLong(0) -> row.getLong(1)).toMap
    assert(rows === (0L until 10L).map(_ -> 100L).toMap)
    df
  }

  private val byHand =
    Seq("spark.shuffle.manager" -> ManagerClass, "spark.sql.extensions" -> ExtensionsClass)

  private def on(name: String, confs: (String, String)*): Unit = test(name) {
    val (_, log) = captureLog("org.apache.spark.comet") {
      withApplication(confs: _*) { session =>
        assert(SparkEnv.get.shuffleManager.getClass.getName === ManagerClass)
        Seq("true", "false").foreach { aqe =>
          withSqlConf(session, Aqe -> aqe)(assertComet(query(session)))
        }
        val sum = session.sparkContext.parallelize(1 to 1000, 3).map(i => (i % 7, i))
          .reduceByKey(_ + _).values.sum()
        assert(sum === 500500)
      }
    }
    assert(LogCapture.messages(log) === Nil)
  }

  on("the plugin and off-heap memory are enough", pluginConfs: _*)
  on("manager and extension by hand, without the plugin", offHeapConfs ++ byHand: _*)
  on("manager and extension by hand, beside the plugin", pluginConfs ++ byHand: _*)
  on(
    "another extension stays in place",
    pluginConfs :+ ("spark.sql.extensions" -> classOf[NoExtensions].getName): _*
  )

  /** The application runs on Spark's shuffle, and one warning names the cause and what to do. */
  private def off(name: String, confs: Seq[(String, String)], words: String*): Unit = test(name) {
    val (_, log) = captureLog("org.apache.spark.comet") {
      withApplication(confs: _*) { session =>
        Seq("true", "false").foreach { aqe =>
          withSqlConf(session, Aqe -> aqe)(assertNotComet(query(session)))
        }
      }
    }
    val messages = LogCapture.messages(log)
    assert(log.map(_.getLevel) === Seq(Level.WARN), messages)
    words.foreach(word => assert(messages.head.contains(word)))
  }

  private val plugin = Seq("spark.plugins" -> PluginClass)

  off(
    "off-heap memory is off",
    plugin,
    "off-heap",
    "spark.memory.offHeap.enabled=true",
    "spark.memory.offHeap.size"
  )
  off("off-heap memory is off, set up by hand", byHand, "spark.memory.offHeap.enabled=true")
  off(
    "another manager",
    pluginConfs :+ ("spark.shuffle.manager" -> classOf[OtherShuffleManager].getName),
    "spark.shuffle.manager",
    classOf[OtherShuffleManager].getName,
    ManagerClass
  )
  off(
    "Spark's manager by name",
    pluginConfs :+ ("spark.shuffle.manager" -> "sort"),
    "spark.shuffle.manager",
    "'sort'"
  )
  off(
    "the extension without the manager",
    offHeapConfs :+ ("spark.sql.extensions" -> ExtensionsClass),
    "spark.shuffle.manager",
    ManagerClass
  )

  for (
    (key, value, allowed) <- Seq(
      (Codec, "rar", "zstd"),
      ("spark.comet.shuffle.mode", "fast", "jvm"),
      ("spark.comet.shuffle.format", "compact", "ipc"),
      ("spark.comet.shuffle.compression.zstd.level", "99", "22"),
      ("spark.comet.shuffle.jvm.batchSize", "many", "a whole number from 1"),
      ("spark.comet.shuffle.jvm.maxWritersPerExecutor", "0", "a whole number from 1"),
      ("spark.comet.batchSize", "-1", "a whole number from 1"),
      ("spark.comet.shuffle.sizeInBytesMultiplier", "0", "greater than 0"),
      ("spark.comet.shuffle.enabled", "perhaps", "true or false")
    )
  )
    off(s"$key=$value", pluginConfs :+ (key -> value), key, value, allowed)
  off(
    "a bad value, set up by hand",
    offHeapConfs ++ byHand :+ (Codec -> "rar"),
    Codec,
    "rar",
    "lz4"
  )

  test("switched off in the configuration, or in a session") {
    val disabled = "spark.comet.shuffle.enabled" -> "false"
    val (_, log) = captureLog("org.apache.spark.comet") {
      withComet(disabled)(session => assertNotComet(query(session)))
      withComet() { session =>
        withSqlConf(session, disabled)(assertNotComet(query(session)))
        assertComet(query(session))
      }
    }
    assert(log === Nil)
  }

  test("a bad value in a session leaves its exchanges with Spark's shuffle, and explain says so") {
    withComet() { session =>
      withSqlConf(session, Codec -> "rar") {
        val df = query(session)
        assertNotComet(df)
        val explained = df.queryExecution.explainString(ExplainMode.fromString("formatted"))
        Seq("0 of 1 shuffle exchanges are Comet's", Codec, "'rar'", "lz4, zstd, snappy, none")
          .foreach(words => assert(explained.contains(words)))
      }
      assertComet(query(session))
    }
  }
}

class NoExtensions extends (org.apache.spark.sql.SparkSessionExtensions => Unit) {
  override def apply(extensions: org.apache.spark.sql.SparkSessionExtensions): Unit = ()
}
