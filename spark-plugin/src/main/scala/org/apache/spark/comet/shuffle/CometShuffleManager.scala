package org.apache.spark.comet.shuffle

import org.apache.spark.{ShuffleDependency, SparkConf, SparkEnv, TaskContext}
import org.apache.spark.internal.config.{EXECUTOR_CORES, SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD}
import org.apache.spark.shuffle._
import org.apache.spark.shuffle.api.ShuffleExecutorComponents
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.util.collection.OpenHashSet

/** The handle of a shuffle that is ours: its output is read as batches. */
sealed abstract class CometShuffleHandle[K, V](
    shuffleId: Int,
    dependency: ShuffleDependency[K, V, V]
) extends BaseShuffleHandle[K, V, V](shuffleId, dependency)

/** The handle of a shuffle whose rows are written by the bypass writer. */
class CometBypassMergeSortShuffleHandle[K, V](
    shuffleId: Int,
    dependency: ShuffleDependency[K, V, V]
) extends CometShuffleHandle[K, V](shuffleId, dependency)

/** The handle of a shuffle whose rows are sorted by partition and then written. */
class CometUnsafeShuffleHandle[K, V](
    shuffleId: Int,
    dependency: ShuffleDependency[K, V, V]
) extends CometShuffleHandle[K, V](shuffleId, dependency)

/** The handle of a shuffle whose batches are written in native code. */
class CometNativeShuffleHandle[K, V](
    shuffleId: Int,
    dependency: ShuffleDependency[K, V, V]
) extends CometShuffleHandle[K, V](shuffleId, dependency)

/** Spark's sort shuffle manager, with writers and readers of its own for the exchanges that
  * [[org.apache.spark.comet.sql.CometShuffleExchangeExec]] prepared. Every other shuffle takes Spark's code.
  *
  * Spark makes the manager before memory and block manager exist, so the constructor looks at nothing.
  */
class CometShuffleManager(conf: SparkConf) extends SortShuffleManager(conf) {

  private lazy val executorComponents: ShuffleExecutorComponents = {
    val components = ShuffleDataIOUtils.loadShuffleDataIO(conf).executor()
    val extraConfigs = new java.util.HashMap[String, String]()
    conf.getAllWithPrefix(ShuffleDataIOUtils.SHUFFLE_SPARK_CONF_PREFIX).foreach {
      case (key, value) =>
        extraConfigs.put(key, value)
    }
    components.initializeExecutor(conf.getAppId, SparkEnv.get.executorId, extraConfigs)
    components
  }

  override def registerShuffle[K, V, C](
      shuffleId: Int,
      dependency: ShuffleDependency[K, V, C]
  ): ShuffleHandle = dependency.serializer match {
    case ours: CometShuffleSerializer =>
      val batches = dependency.asInstanceOf[ShuffleDependency[K, V, V]]
      if (ours.native.isDefined) new CometNativeShuffleHandle(shuffleId, batches)
      else if (
        CometShuffleManager.takesBypass(conf, batches.partitioner.numPartitions, ours.settings)
      ) {
        new CometBypassMergeSortShuffleHandle(shuffleId, batches)
      } else {
        new CometUnsafeShuffleHandle(shuffleId, batches)
      }
    case _ => super.registerShuffle(shuffleId, dependency)
  }

  override def getWriter[K, V](
      handle: ShuffleHandle,
      mapId: Long,
      context: TaskContext,
      metrics: ShuffleWriteMetricsReporter
  ): ShuffleWriter[K, V] = handle match {
    case ours: CometBypassMergeSortShuffleHandle[K @unchecked, V @unchecked] =>
      rememberMapOutput(handle.shuffleId, mapId)
      new CometBypassMergeSortShuffleWriter(ours, mapId, context, metrics, executorComponents)
    case ours: CometUnsafeShuffleHandle[K @unchecked, V @unchecked] =>
      rememberMapOutput(handle.shuffleId, mapId)
      new CometUnsafeShuffleWriter(ours, mapId, context, metrics, executorComponents)
    case ours: CometNativeShuffleHandle[K @unchecked, V @unchecked] =>
      rememberMapOutput(handle.shuffleId, mapId)
      new CometNativeShuffleWriter(ours, mapId, context, metrics, shuffleBlockResolver)
    case _ => super.getWriter(handle, mapId, context, metrics)
  }

  // What unregisterShuffle deletes, and what decommissioning adds to.
  private def rememberMapOutput(shuffleId: Int, mapId: Long): Unit = {
    val mapIds = shuffleBlockResolver.taskIdMapsForShuffle
      .computeIfAbsent(shuffleId, _ => new OpenHashSet[Long](16))
    mapIds.synchronized(mapIds.add(mapId))
  }

  override def getReader[K, C](
      handle: ShuffleHandle,
      startMapIndex: Int,
      endMapIndex: Int,
      startPartition: Int,
      endPartition: Int,
      context: TaskContext,
      metrics: ShuffleReadMetricsReporter
  ): ShuffleReader[K, C] = handle match {
    case ours: CometShuffleHandle[K @unchecked, C @unchecked] =>
      val tracker = SparkEnv.get.mapOutputTracker
      val (blocks, batchFetchPossible) =
        if (ours.dependency.isShuffleMergeFinalizedMarked) {
          val merged = tracker.getPushBasedShuffleMapSizesByExecutorId(
            handle.shuffleId,
            startMapIndex,
            endMapIndex,
            startPartition,
            endPartition
          )
          (merged.iter, merged.enableBatchFetch)
        } else {
          (
            tracker.getMapSizesByExecutorId(
              handle.shuffleId,
              startMapIndex,
              endMapIndex,
              startPartition,
              endPartition
            ),
            true
          )
        }
      new CometBlockStoreShuffleReader(
        ours,
        blocks,
        startPartition,
        context,
        metrics,
        batchFetch = batchFetchPossible &&
          SortShuffleManager.canUseBatchFetch(startPartition, endPartition, context)
      )
    case _ =>
      super.getReader(
        handle,
        startMapIndex,
        endMapIndex,
        startPartition,
        endPartition,
        context,
        metrics
      )
  }
}

object CometShuffleManager {

  /** The most partitions of a shuffle of ours: pointers to rows have 24 bits for them, as in Spark's serialized sort. */
  val MaxPartitions: Int = 1 << 24

  /** Whether rows go through the bypass writer. It starts with a page for each partition, so there must be few, in a task
    * and in all of the executor's tasks together.
    */
  private def takesBypass(conf: SparkConf, numPartitions: Int, settings: BlockSettings): Boolean = {
    val cores = conf.getOption(EXECUTOR_CORES.key).fold(1)(_.toInt)
    numPartitions <= conf.get(SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD) &&
    numPartitions.toLong * cores <= settings.maxBypassWriters
  }
}
