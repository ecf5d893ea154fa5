package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import org.apache.spark.TaskContext
import org.apache.spark.internal.config.SHUFFLE_SORT_INIT_BUFFER_SIZE
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter
import org.apache.spark.shuffle.api.ShuffleExecutorComponents
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** Writes rows as columnar blocks through a [[SpillSorter]]: what it costs follows the rows, not the partitions. When
  * memory is denied rows are spilled; at the end the blocks of spills are merged with those of the rows in memory,
  * without being decoded.
  */
class CometUnsafeShuffleWriter[K, V](
    handle: CometShuffleHandle[K, V],
    mapId: Long,
    context: TaskContext,
    writeMetrics: ShuffleWriteMetricsReporter,
    executorComponents: ShuffleExecutorComponents
) extends CometRowShuffleWriter[K, V](
      handle,
      mapId,
      context,
      writeMetrics,
      executorComponents,
      CometUnsafeShuffleWriter.pageSize(context)
    ) {

  private val sorter = new SpillSorter(
    allocator,
    env.conf.get(SHUFFLE_SORT_INIT_BUFFER_SIZE),
    bytes => spill(bytes) > 0
  )
  private val spills = new SortedSpills(spillFile)

  override protected def numRows: Long = sorter.numRows

  override protected def memoryUsed: Long = sorter.memoryUsed

  override protected def insertRow(partition: Int, row: UnsafeRow): Unit =
    sorter.insertRow(partition, row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)

  /** Where partitions have few rows, only the fullest are spilled, so that the others get larger blocks later. */
  override protected def spillRows(bytes: Long): Long = {
    var freed = 0L
    while (freed < bytes && sorter.numRows > 0)
      freed += spillOnce(bytes - freed)
    freed
  }

  private def spillOnce(bytes: Long): Long = {
    val smallBlocks = sorter.numRows < numPartitions.toLong * serializer.settings.rowsPerBlock / 8
    val (rows, forget) =
      if (smallBlocks && sorter.hasManyPages && bytes < sorter.memoryUsed / 3) {
        sorter.fullest(numPartitions)
      } else {
        (sorter.sorted(numPartitions), () => sorter.freeAll())
      }
    val written = spills.add { write =>
      encode(rows, last = false)((partition, blocks) => timedWrite(write(partition, blocks)))
    }
    val freed = forget()
    countSpill(freed, written)
    freed
  }

  override protected def writePartitions(output: MapOutput): Unit =
    if (spills.isEmpty) {
      encode(sorter.sorted(numPartitions), last = true) { (partition, blocks) =>
        timedWrite(output.sink(partition).write(blocks))
      }
    } else {
      val merge = spills.merge()
      try mergePartitions(merge, output)
      finally merge.close()
    }

  private def mergePartitions(merge: SpillMerge, output: MapOutput): Unit = {
    // Of partitions that have no rows in memory.
    val endMark = ByteBuffers.toArray(encoder.encodeEnd())
    def copySpilled(end: Int): Unit =
      while (merge.nextPartition < end) {
        context.killTaskIfInterrupted()
        timedWrite {
          val sink = output.sink(merge.nextPartition)
          merge.copyNext(sink)
          sink.write(ByteBuffer.wrap(endMark))
        }
      }
    encode(sorter.sorted(numPartitions), last = true) { (partition, blocks) =>
      copySpilled(partition)
      timedWrite {
        val sink = output.sink(partition)
        if (merge.nextPartition == partition) {
          merge.copyNext(sink)
        }
        sink.write(blocks)
      }
    }
    copySpilled(numPartitions)
  }

  private def encode(rows: SortedRows, last: Boolean)(body: (Int, ByteBuffer) => Unit): Unit =
    rows.foreachBlocks(encoder, last) { (partition, blocks) =>
      context.killTaskIfInterrupted()
      body(partition, blocks)
    }

  override protected def freeMemory(): Unit = sorter.freeAll()
}

private object CometUnsafeShuffleWriter {

  def pageSize(context: TaskContext): Long =
    math.min(SpillSorter.MaxPageBytes, context.taskMemoryManager().pageSizeBytes())
}
