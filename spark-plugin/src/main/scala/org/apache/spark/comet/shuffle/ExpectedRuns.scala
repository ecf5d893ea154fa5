package org.apache.spark.comet.shuffle

import java.util.BitSet

import scala.collection.mutable

import org.apache.spark.storage.{BlockId, BlockManagerId, ShuffleBlockBatchId, ShuffleBlockId}

/** How many partitions with rows a fetched block must hold. Adjacent partitions of one map output may be fetched as one
  * block; the tracker's list, noted here on its way to the fetcher, tells which of them have rows.
  */
private class ExpectedRuns(startPartition: Int) {

  private val partitions = mutable.LongMap.empty[BitSet]

  /** Notes the blocks as they pass. */
  def note(blocksByAddress: Iterator[(BlockManagerId, collection.Seq[(BlockId, Long, Int)])])
      : Iterator[(BlockManagerId, collection.Seq[(BlockId, Long, Int)])] =
    blocksByAddress.map { case (address, blocks) =>
      blocks.foreach {
        case (ShuffleBlockId(_, mapId, reduceId), _, _) =>
          partitions.getOrElseUpdate(mapId, new BitSet()).set(reduceId - startPartition)
        case _ => // Merged blocks hold runs of many map tasks.
      }
      (address, blocks)
    }

  /** The number of runs in a block, or 0 if it isn't known. */
  def of(blockId: BlockId): Int = blockId match {
    case _: ShuffleBlockId => 1
    case ShuffleBlockBatchId(_, mapId, startReduceId, endReduceId) =>
      partitions.get(mapId).fold(0) { noted =>
        noted.get(startReduceId - startPartition, endReduceId - startPartition).cardinality()
      }
    case _ => 0
  }
}
