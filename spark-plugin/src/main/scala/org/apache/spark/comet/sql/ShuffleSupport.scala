package org.apache.spark.comet.sql

import org.apache.spark.SparkEnv
import org.apache.spark.comet.{CometActivation, CometConf, SchemaDescriptor}
import org.apache.spark.comet.shuffle.CometShuffleManager
import org.apache.spark.internal.config.{EXECUTOR_CORES, SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.internal.SQLConf

/** Which exchanges can be ours. */
object ShuffleSupport {

  /** Why `exchange` must stay with Spark's shuffle, or nothing if it can be ours. */
  def fallbackReason(exchange: ShuffleExchangeExec, conf: SQLConf): Option[String] =
    sessionReason(conf)
      .orElse(partitioningReason(exchange.outputPartitioning))
      .orElse(typeReason(exchange))
      .orElse(writerReason(exchange.outputPartitioning.numPartitions))

  private def sessionReason(conf: SQLConf): Option[String] = {
    val env = SparkEnv.get
    if (!conf.getConf(CometConf.SHUFFLE_ENABLED)) {
      Some(s"${CometConf.SHUFFLE_ENABLED.key} is false")
    } else {
      CometActivation.obstacle(env.conf).orElse {
        env.shuffleManager match {
          case _: CometShuffleManager => None
          case other =>
            Some(s"the shuffle manager is ${other.getClass.getName}; leave spark.shuffle.manager " +
              s"unset with the plugin, or set it to ${CometActivation.ManagerClass}")
        }
      }
    }
  }

  private def partitioningReason(partitioning: Partitioning): Option[String] = partitioning match {
    case _: HashPartitioning | _: RangePartitioning | _: RoundRobinPartitioning |
        SinglePartition => None
    case other => Some(s"partitioning ${other.getClass.getSimpleName} is not supported")
  }

  private def typeReason(exchange: ShuffleExchangeExec): Option[String] =
    exchange.child.output.iterator.flatMap { column =>
      SchemaDescriptor.unsupportedReason(column.dataType).map(r => s"column ${column.name}: $r")
    }.nextOption()

  // The rule of Spark's own bypass writer, and a limit on the pages that all tasks of an executor start with.
  private def writerReason(numPartitions: Int): Option[String] = {
    val conf = SparkEnv.get.conf
    val threshold = conf.get(SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD)
    val cores = conf.getOption(EXECUTOR_CORES.key).fold(1)(_.toInt)
    val maxWriters = conf.get(CometConf.MAX_WRITERS_PER_EXECUTOR)
    if (numPartitions > threshold) {
      Some(s"$numPartitions partitions are more than spark.shuffle.sort.bypassMergeThreshold " +
        s"($threshold), and the sort-based writer does not exist yet")
    } else if (numPartitions.toLong * cores > maxWriters) {
      Some(s"$numPartitions partitions times $cores executor cores are more than " +
        s"${CometConf.MAX_WRITERS_PER_EXECUTOR.key} ($maxWriters), and the sort-based writer " +
        "does not exist yet")
    } else {
      None
    }
  }
}
