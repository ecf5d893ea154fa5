package org.apache.spark.comet.sql

import org.apache.spark.SparkEnv
import org.apache.spark.comet.{CometActivation, CometConf, SchemaDescriptor}
import org.apache.spark.comet.shuffle.CometShuffleManager
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
        case "jvm" => jvmChoice(exchange, None)
        case "native" =>
          NativeSupport.reason(exchange, conf)
            .map(why => s"${CometConf.SHUFFLE_MODE.key} is native, but $why")
            .toLeft(Choice(NativeWriter, None))
        case _ =>
          NativeSupport.reason(exchange, conf) match {
            case None => Right(Choice(NativeWriter, None))
            case notNative => jvmChoice(exchange, notNative)
          }
      }
    }
  }

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

  private def jvmChoice(
      exchange: ShuffleExchangeExec,
      notNative: Option[String]
  ): Either[String, Choice] = {
    val numPartitions = exchange.outputPartitioning.numPartitions
    val most = CometShuffleManager.MaxSortedPartitions
    Option.when(numPartitions > most)(
      s"$numPartitions partitions are more than the $most that rows can be sorted into"
    ).toLeft(Choice(JvmWriter, notNative))
  }
}
