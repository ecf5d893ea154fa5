package org.apache.spark.comet.sql

import org.apache.spark.SparkEnv
import org.apache.spark.comet.shuffle.ShuffleShims
import org.apache.spark.internal.config.{IO_ENCRYPTION_ENABLED, SHUFFLE_IO_PLUGIN_CLASS}
import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning
import org.apache.spark.sql.execution.{
  ExternalRDDScanExec,
  FileSourceScanExec,
  LeafExecNode,
  LocalTableScanExec,
  RDDScanExec,
  RangeExec,
  SparkPlan
}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, FileScan}
import org.apache.spark.sql.execution.exchange.{
  ReusedExchangeExec,
  ShuffleExchangeExec,
  ShuffleExchangeLike
}
import org.apache.spark.sql.internal.SQLConf

/** Which exchanges the native writer can take, of those that can be ours. */
object NativeSupport {

  /** Why `exchange` cannot be written in native code, or nothing if it can. */
  def reason(exchange: ShuffleExchangeExec, conf: SQLConf): Option[String] =
    Option.unless(exchange.child.supportsColumnar)("its input are rows")
      .orElse(applicationReason)
      .orElse(Option.when(ShuffleShims.wantsRowChecksums(conf))("row checksums need rows"))
      .orElse(orderReason(exchange, conf))

  private def applicationReason: Option[String] = {
    val conf = SparkEnv.get.conf
    if (conf.get(IO_ENCRYPTION_ENABLED)) {
      Some(s"${IO_ENCRYPTION_ENABLED.key} is true")
    } else {
      Option.unless(
        conf.get(SHUFFLE_IO_PLUGIN_CLASS) == SHUFFLE_IO_PLUGIN_CLASS.defaultValueString
      )(
        s"${SHUFFLE_IO_PLUGIN_CLASS.key} is set"
      )
    }
  }

  /** A task that runs again must place its rows as before. Where they come in a fixed order their number places them;
    * else they have to be sorted first, as Spark does it unless it is told not to.
    */
  private def orderReason(exchange: ShuffleExchangeExec, conf: SQLConf): Option[String] =
    exchange.outputPartitioning match {
      case RoundRobinPartitioning(partitions)
          if partitions > 1 && conf.sortBeforeRepartition && !isOrdered(exchange.child) =>
        Some("its input has no fixed order, so that round robin has to sort it")
      case _ => None
    }

  /** Whether the plan gives the same rows in the same order whenever it runs. Nothing in it reads a shuffle, and what it
    * scans is known to have an order: not every source has one.
    */
  private def isOrdered(plan: SparkPlan): Boolean = plan match {
    case _: ShuffleExchangeLike | _: ReusedExchangeExec => false
    case cached: InMemoryTableScanExec => isOrdered(cached.relation.cachedPlan)
    case adaptive: AdaptiveSparkPlanExec => isOrdered(adaptive.executedPlan)
    case stage: QueryStageExec => isOrdered(stage.plan)
    case _: FileSourceScanExec | _: RangeExec | _: LocalTableScanExec => true
    case scan: BatchScanExec => scan.scan.isInstanceOf[FileScan]
    case scan: RDDScanExec => isOrdered(scan.rdd)
    case scan: ExternalRDDScanExec[_] => isOrdered(scan.rdd)
    case _: LeafExecNode => false
    case other => other.children.forall(isOrdered)
  }

  private def isOrdered(rdd: RDD[_]): Boolean =
    rdd.outputDeterministicLevel == DeterministicLevel.DETERMINATE
}
