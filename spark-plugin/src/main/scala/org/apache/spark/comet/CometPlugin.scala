package org.apache.spark.comet

import java.util.{Collections, Map => JMap}

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.SHUFFLE_MANAGER
import org.apache.spark.sql.internal.{SQLConf, StaticSQLConf}

/** `spark.plugins=org.apache.spark.comet.CometPlugin` is all that an application needs, besides off-heap memory. */
class CometPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new CometDriverPlugin
  override def executorPlugin(): ExecutorPlugin = new CometExecutorPlugin
}

/** Sets shuffle manager and SQL extension on the live configuration, which Spark 4 reads after plugins are started. */
class CometDriverPlugin extends DriverPlugin with Logging {

  override def init(sc: SparkContext, ctx: PluginContext): JMap[String, String] = {
    val conf = ctx.conf()
    if (CometActivation.obstacle(conf, manager = None).isEmpty) {
      conf.set(SHUFFLE_MANAGER.key, CometActivation.ManagerClass)
      append(conf, StaticSQLConf.SPARK_SESSION_EXTENSIONS.key, CometActivation.ExtensionsClass)
      append(conf, SQLConf.EXTENDED_EXPLAIN_PROVIDERS.key, CometActivation.ExplainClass)
      logInfo(s"Comet Shuffle ${NativeLibrary.jarVersion()} is on")
    }
    Collections.emptyMap[String, String]()
  }

  private def append(conf: SparkConf, key: String, className: String): Unit = {
    val present = conf.get(key, "").split(',').map(_.trim).filter(_.nonEmpty)
    if (!present.contains(className)) {
      conf.set(key, (present :+ className).mkString(","))
    }
  }
}

/** Loads the native library when an executor starts, so that a failure is in its log before the first task needs it. */
class CometExecutorPlugin extends ExecutorPlugin with Logging {

  override def init(ctx: PluginContext, extraConf: JMap[String, String]): Unit =
    if (ctx.conf().get(SHUFFLE_MANAGER.key, "") == CometActivation.ManagerClass) {
      try
        NativeLibrary.load()
      catch {
        case e: CometNativeException =>
          logError("Tasks of Comet Shuffle will fail on this executor: " + e.getMessage, e)
      }
    }
}
