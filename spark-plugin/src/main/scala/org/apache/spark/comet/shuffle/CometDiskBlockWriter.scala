package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import org.apache.spark.comet.memory.CometShuffleMemoryAllocator

/** What the partition writers of one task share. */
trait DiskBlockWriterTask {

  /** Frees memory of the task by spilling; false if there is nothing left to spill. */
  def makeRoom(bytes: Long): Boolean

  /** Takes a full batch of `partition`, of `rows` rows, as encoded blocks. */
  def addBlocks(partition: Int, rows: Int, blocks: ByteBuffer): Unit
}

/** The rows of one partition in one map task. A batch starts on a page of `initialPageSize` bytes, and each further page
  * doubles up to `maxPageSize`: many partitions with few rows stay small, large ones need few pages. Writing a batch out
  * frees its pages, so that the next one starts small again.
  */
class CometDiskBlockWriter(
    partition: Int,
    allocator: CometShuffleMemoryAllocator,
    encoder: RowEncoder,
    task: DiskBlockWriterTask,
    initialPageSize: Long,
    maxPageSize: Long,
    rowsPerBlock: Int
) extends SpillWriter(allocator) {

  override protected def nextPageRequest(required: Long): Long = {
    // 63 doublings overflow; the limit is reached long before.
    val doubled = initialPageSize << math.min(numPages, 32)
    math.max(required, math.min(doubled, maxPageSize))
  }

  override protected def makeRoom(bytes: Long): Boolean = task.makeRoom(bytes)

  override def insertRow(base: AnyRef, offset: Long, length: Int): Unit = {
    // A full batch waits for the next row, so that a partition that fits in memory ends with rows, not with a mere mark.
    if (numRows >= rowsPerBlock || memoryUsed >= CometDiskBlockWriter.MaxBatchBytes) {
      val rows = numRows
      task.addBlocks(partition, rows, writeOut(last = false))
    }
    super.insertRow(base, offset, length)
  }

  /** Encodes the rows and frees their pages. The blocks are valid until the encoder is used again. */
  def writeOut(last: Boolean): ByteBuffer = {
    val blocks = encodeRows(last)
    freePages()
    blocks
  }

  /** Encodes the rows and keeps them. The blocks are valid until the encoder is used again. */
  def encodeRows(last: Boolean): ByteBuffer =
    encoder.encode(filledPages(), last)
}

object CometDiskBlockWriter {

  /** Pages start here: enough for a few hundred rows. */
  val InitialPageSize: Long = 64L << 10

  /** The largest page that doubling reaches, if Spark's page size allows it. */
  val MaxPageSize: Long = 128L << 20

  /** Rows of this many bytes are written out even if they are few, so that a block stays far below 2 GiB. */
  val MaxBatchBytes: Long = 256L << 20
}
