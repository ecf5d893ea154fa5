package org.apache.spark.comet.sql

import org.apache.spark.SparkEnv
import org.apache.spark.comet.{CometActivation, CometConf, SchemaDescriptor}
import org.apache.spark.internal.config.{EXECUTOR_CORES, SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.internal.SQLConf

/** How an exchange of ours is written.
  *
  * @param notNative why not in native code, where the mode leaves the choice
  */
case class Choice(writer: ShuffleWriterKind, notNative: Option[String])

/** Which exchanges can be ours, and how they are written. */
object ShuffleSupport {

  /** The writer that `exchange` takes as one of ours, or why it must stay with Spark's shuffle. */
  def choose(exchange: ShuffleExchangeExec, conf: SQLConf): Either[String, Choice] = {
    val reason = sessionReason(conf)
      .orElse(partitioningReason(exchange.outputPartitioning))
      .orElse(typeReason(exchange))
    reason.toLeft(()).flatMap { _ =>
      CometConf.SHUFFLE_MODE.get(conf) match {
        case "jvm" => jvmChoice(exchange, conf, None)
        case "native" =>
          NativeSupport.reason(exchange, conf)
            .map(why => s"${CometConf.SHUFFLE_MODE.key} is native, but $why")
            .toLeft(Choice(NativeWriter, None))
        case _ =>
          NativeSupport.reason(exchange, conf) match {
            case None => Right(Choice(NativeWriter, None))
            case notNative => jvmChoice(exchange, conf, notNative)
          }
      }
    }
  }

  private def jvmChoice(
      exchange: ShuffleExchangeExec,
      conf: SQLConf,
      notNative: Option[String]
  ): Either[String, Choice] =
    writerReason(exchange.outputPartitioning.numPartitions, conf)
      .toLeft(Choice(JvmWriter, notNative))

  private def sessionReason(conf: SQLConf): Option[String] = {
    val env = SparkEnv.get
    CometActivation.obstacle(env.conf, Some(env.shuffleManager))
      .orElse(CometConf.invalidValue(conf))
      .orElse(Option.unless(CometConf.SHUFFLE_ENABLED.get(conf))(
        s"${CometConf.SHUFFLE_ENABLED.key} is false"
      ))
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

  // For rows. The rule of Spark's own bypass writer, and a limit on the pages that all tasks of an executor start with.
  private def writerReason(numPartitions: Int, conf: SQLConf): Option[String] = {
    val sparkConf = SparkEnv.get.conf
    val threshold = sparkConf.get(SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD)
    val cores = sparkConf.getOption(EXECUTOR_CORES.key).fold(1)(_.toInt)
    val maxWriters = CometConf.MAX_WRITERS_PER_EXECUTOR.get(conf)
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
