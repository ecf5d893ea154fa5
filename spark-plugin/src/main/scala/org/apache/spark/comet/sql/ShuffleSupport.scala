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
        case "jvm" => Right(Choice(JvmWriter, None))
        case "native" =>
          NativeSupport.reason(exchange, conf)
            .map(why => s"${CometConf.SHUFFLE_MODE.key} is native, but $why")
            .toLeft(Choice(NativeWriter, None))
        case _ =>
          val notNative = NativeSupport.reason(exchange, conf)
          Right(Choice(if (notNative.isEmpty) NativeWriter else JvmWriter, notNative))
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
        SinglePartition =>
      val (wanted, most) = (partitioning.numPartitions, CometShuffleManager.MaxPartitions)
      Option.when(wanted > most)(s"$wanted partitions are more than the $most that there may be")
    case other => Some(s"partitioning ${other.getClass.getSimpleName} is not supported")
  }

  private def typeReason(exchange: ShuffleExchangeExec): Option[String] =
    exchange.child.output.iterator.flatMap { column =>
      SchemaDescriptor.unsupportedReason(column.dataType).map(r => s"column ${column.name}: $r")
    }.nextOption()
}
