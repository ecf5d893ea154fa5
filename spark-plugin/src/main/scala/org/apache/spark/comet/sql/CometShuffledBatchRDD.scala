package org.apache.spark.comet.sql

import org.apache.spark.{
  MapOutputTrackerMaster,
  Partition,
  ShuffleDependency,
  SparkEnv,
  TaskContext
}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}

/** A partition of [[CometShuffledBatchRDD]]. */
private case class CometShuffledBatchPartition(index: Int, spec: ShufflePartitionSpec)
    extends Partition

/** The batches of a shuffle, by the partition specs of adaptive execution. Its elements are `ColumnarBatch`es: as
  * everywhere in Spark, columnar data passes as rows as far as types go.
  */
class CometShuffledBatchRDD(
    shuffle: ShuffleDependency[Int, InternalRow, InternalRow],
    metrics: Map[String, SQLMetric],
    specs: Array[ShufflePartitionSpec]
) extends ShuffledRowRDD(shuffle, metrics, specs) {

  override def getPartitions: Array[Partition] =
    Array.tabulate[Partition](specs.length)(i => CometShuffledBatchPartition(i, specs(i)))

  override def getPreferredLocations(partition: Partition): Seq[String] = {
    val tracker = SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]
    specOf(partition) match {
      case CoalescedPartitionSpec(start, end, _) =>
        (start until end).flatMap(tracker.getPreferredLocationsForShuffle(dependency, _))
      case PartialReducerPartitionSpec(_, startMap, endMap, _) =>
        tracker.getMapLocation(dependency, startMap, endMap)
      case PartialMapperPartitionSpec(map, _, _) =>
        tracker.getMapLocation(dependency, map, map + 1)
      case CoalescedMapperPartitionSpec(startMap, endMap, _) =>
        tracker.getMapLocation(dependency, startMap, endMap)
    }
  }

  override def compute(partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    val (maps, reducers) = specOf(partition) match {
      case CoalescedPartitionSpec(start, end, _) => ((0, Int.MaxValue), (start, end))
      case PartialReducerPartitionSpec(reducer, startMap, endMap, _) =>
        ((startMap, endMap), (reducer, reducer + 1))
      case PartialMapperPartitionSpec(map, start, end) => ((map, map + 1), (start, end))
      case CoalescedMapperPartitionSpec(startMap, endMap, numReducers) =>
        ((startMap, endMap), (0, numReducers))
    }
    val reporter = new SQLShuffleReadMetricsReporter(
      context.taskMetrics().createTempShuffleReadMetrics(),
      metrics
    )
    SparkEnv.get.shuffleManager
      .getReader[Int, AnyRef](
        dependency.shuffleHandle,
        maps._1,
        maps._2,
        reducers._1,
        reducers._2,
        context,
        reporter
      )
      .read().map(_._2).asInstanceOf[Iterator[InternalRow]]
  }

  private def specOf(partition: Partition): ShufflePartitionSpec =
    partition.asInstanceOf[CometShuffledBatchPartition].spec
}
