package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.comet.Native
import org.apache.spark.comet.memory.CometShuffleMemoryAllocator
import org.apache.spark.unsafe.memory.MemoryBlock

/** Encoded blocks of one map task that wait for the final file: in memory while Spark grants it, else as extents of the
  * task's spill file. The extents of a partition keep their order.
  */
class EncodedBlocks(
    numPartitions: Int,
    allocator: CometShuffleMemoryAllocator,
    spillFile: SpillFile,
    maxPageSize: Long
) {

  /** Bytes of blocks: in `page` from `offset` on, or in the spill file if there is no page. */
  private class Extent(var page: MemoryBlock, var offset: Long, var length: Long)

  private val extents = new Array[ArrayBuffer[Extent]](numPartitions)
  private val pages = ArrayBuffer.empty[MemoryBlock]
  private var pageUsed = 0L
  private var heldBytes = 0L

  /** Bytes of memory held. */
  def memoryUsed: Long = heldBytes

  def hasBlocks(partition: Int): Boolean = extents(partition) != null

  /** Appends blocks to a partition, in memory if Spark grants it; returns the bytes that went to disk. */
  def add(partition: Int, blocks: ByteBuffer): Long = {
    val length = blocks.remaining()
    if (roomFor(length)) {
      val extent = new Extent(pages.last, pageUsed, length)
      view(extent).put(blocks)
      append(partition, extent)
      pageUsed += length
      0L
    } else {
      addToFile(partition, blocks)
    }
  }

  /** Appends blocks to a partition, on disk; returns their bytes there. */
  def addToFile(partition: Int, blocks: ByteBuffer): Long = {
    val written = spillFile.append(blocks)
    append(partition, new Extent(null, spillFile.length - written, written))
    written
  }

  /** Moves all blocks from memory to disk; returns the bytes written and those freed. */
  def spill(): (Long, Long) = {
    var written = 0L
    extents.iterator.filter(_ != null).flatten.filter(_.page != null).foreach { extent =>
      extent.length = spillFile.append(view(extent))
      extent.offset = spillFile.length - extent.length
      extent.page = null
      written += extent.length
    }
    (written, freePages())
  }

  /** Hands the blocks of a partition on, in order. */
  def read(partition: Int, sink: ByteSink): Unit = if (hasBlocks(partition)) {
    extents(partition).foreach { extent =>
      if (extent.page == null) {
        spillFile.read(extent.offset, extent.length, sink)
      } else {
        sink.write(view(extent))
      }
    }
  }

  /** Gives all memory back; returns its bytes. */
  def freePages(): Long = {
    val freed = heldBytes
    pages.foreach(allocator.free)
    pages.clear()
    pageUsed = 0
    heldBytes = 0
    freed
  }

  private def append(partition: Int, extent: Extent): Unit = {
    if (extents(partition) == null) {
      extents(partition) = new ArrayBuffer[Extent](4)
    }
    extents(partition) += extent
  }

  private def view(extent: Extent): ByteBuffer =
    Native.wrap(extent.page.getBaseOffset + extent.offset, extent.length.toInt)

  // Pages double like those of rows, so that small tasks hold little and large ones stay far from Spark's page limit.
  private def roomFor(length: Int): Boolean =
    if (pages.nonEmpty && pages.last.size() - pageUsed >= length) {
      true
    } else {
      val doubled = EncodedBlocks.InitialPageSize << math.min(pages.length, 32)
      val page = allocator.tryAllocate(math.max(length.toLong, math.min(doubled, maxPageSize)))
      if (page == null) {
        false
      } else {
        pages += page
        pageUsed = 0
        heldBytes += page.size()
        true
      }
    }
}

private object EncodedBlocks {
  val InitialPageSize: Long = 256L << 10
}
