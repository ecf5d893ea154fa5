package org.apache.spark.comet.shuffle

import java.io.InputStream

import org.apache.spark.{InterruptibleIterator, SparkEnv, TaskContext}
import org.apache.spark.internal.config
import org.apache.spark.shuffle.{BaseShuffleHandle, ShuffleReadMetricsReporter, ShuffleReader}
import org.apache.spark.storage.{BlockId, BlockManagerId, ShuffleBlockFetcherIterator}
import org.apache.spark.util.CompletionIterator

/** Fetches blocks by Spark's own fetcher and hands them on as batches: each value is a `ColumnarBatch`, the key is of no
  * meaning. A block that is corrupt or incomplete is a fetch failure, so that the map stage runs again.
  */
class CometBlockStoreShuffleReader[K, C](
    handle: BaseShuffleHandle[K, C, C],
    blocksByAddress: Iterator[(BlockManagerId, collection.Seq[(BlockId, Long, Int)])],
    startPartition: Int,
    context: TaskContext,
    readMetrics: ShuffleReadMetricsReporter,
    batchFetch: Boolean
) extends ShuffleReader[K, C] {

  private val serializer = handle.dependency.serializer.asInstanceOf[CometShuffleSerializer]

  override def read(): Iterator[Product2[K, C]] = {
    val batches = new BatchIterator(fetchedBlocks, serializer, context).map { batch =>
      readMetrics.incRecordsRead(batch.numRows())
      (0, batch).asInstanceOf[Product2[K, C]]
    }
    val counted = CompletionIterator[Product2[K, C], Iterator[Product2[K, C]]](
      batches,
      context.taskMetrics().mergeShuffleReadMetrics()
    )
    new InterruptibleIterator(context, counted)
  }

  private def fetchedBlocks: Iterator[FetchedBlock] = {
    val env = SparkEnv.get
    val expected = new ExpectedRuns(startPartition)
    var wrapped: BlockInputStream = null
    val wrap = (_: BlockId, in: InputStream) => {
      wrapped = new BlockInputStream(env.serializerManager.wrapForEncryption(in))
      wrapped
    }
    // Corruption is always detected, by our own checksums; a second look by Spark would only copy the data.
    new ShuffleBlockFetcherIterator(
      context,
      env.blockManager.blockStoreClient,
      env.blockManager,
      env.mapOutputTracker,
      expected.note(blocksByAddress),
      wrap,
      env.conf.get(config.REDUCER_MAX_SIZE_IN_FLIGHT) * 1024 * 1024,
      env.conf.get(config.REDUCER_MAX_REQS_IN_FLIGHT),
      env.conf.get(config.REDUCER_MAX_BLOCKS_IN_FLIGHT_PER_ADDRESS),
      env.conf.get(config.MAX_REMOTE_BLOCK_SIZE_FETCH_TO_MEM),
      env.conf.get(config.SHUFFLE_MAX_ATTEMPTS_ON_NETTY_OOM),
      true,
      false,
      env.conf.get(config.SHUFFLE_CHECKSUM_ENABLED),
      env.conf.get(config.SHUFFLE_CHECKSUM_ALGORITHM),
      readMetrics,
      fetchInBatches(env)
    ).toCompletionIterator.map { case (blockId, stream) =>
      new FetchedBlock(blockId, stream, wrapped, expected.of(blockId))
    }
  }

  // Encrypted partitions are streams of their own, so adjacent ones cannot be read as one (SPARK-34790).
  private def fetchInBatches(env: SparkEnv): Boolean = batchFetch &&
    !env.conf.get(config.SHUFFLE_USE_OLD_FETCH_PROTOCOL) &&
    !env.conf.get(config.IO_ENCRYPTION_ENABLED)
}
