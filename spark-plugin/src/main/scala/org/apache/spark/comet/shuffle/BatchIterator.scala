package org.apache.spark.comet.shuffle

import java.lang.ref.Cleaner

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.TaskContext
import org.apache.spark.comet.{CometCorruptBlockException, Native, NativeLibrary}
import org.apache.spark.comet.memory.NativeMemoryReservation
import org.apache.spark.comet.vector.{CometColumns, ReadGuard}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Decodes fetched blocks into batches of about `rowsPerBatch` rows: smaller blocks are read until that many rows are
  * there, then decoded and joined in one native call. A batch lives until the next one or the end of the task.
  */
private class BatchIterator(
    fetched: Iterator[FetchedBlock],
    serializer: CometShuffleSerializer,
    context: TaskContext
) extends Iterator[ColumnarBatch] {

  NativeLibrary.load()

  private val rowsPerBatch = serializer.settings.rowsPerBatch
  private val reservation = new NativeMemoryReservation(context.taskMemoryManager())
  private val stats = new Array[Long](2)
  private val buffer = new BlockBuffer
  private val decoder = Native.newBlockDecoder(serializer.descriptor)
  private val guard = new ReadGuard
  private val columns = new CometColumns(serializer.schema, decoder, guard)
  private var ready: ColumnarBatch = _

  // The blocks in the buffer: where each comes from, their rows and their length once decoded.
  private val sources = ArrayBuffer.empty[FetchedBlock]
  private var pendingRows = 0L
  private var pendingRawBytes = 0L
  // A block that was read behind the others but did not fit into their batch starts here, or -1.
  private var carriedFrom = -1L
  private var current: FetchedBlock = _

  context.addTaskCompletionListener[Unit](_ => close())

  override def hasNext: Boolean = guard.enter() && {
    if (ready == null) {
      ready = advance()
    }
    ready != null
  }

  override def next(): ColumnarBatch = {
    if (!hasNext) {
      throw new NoSuchElementException("end of the shuffle's batches")
    }
    val batch = ready
    ready = null
    batch
  }

  private def advance(): ColumnarBatch = {
    var batch: ColumnarBatch = null
    var more = true
    while (batch == null && more) {
      context.killTaskIfInterrupted()
      more = fill()
      if (sources.nonEmpty) {
        batch = decode()
      }
    }
    batch
  }

  /** Reads blocks until a batch is full; false at the end of all blocks. */
  private def fill(): Boolean = {
    startWithCarried()
    while (!isFull && carriedFrom < 0) {
      if (current == null) {
        if (!fetched.hasNext) {
          return false
        }
        current = fetched.next()
      }
      if (!readBlock()) {
        current.checkComplete()
        current.close()
        current = null
      }
    }
    true
  }

  private def startWithCarried(): Unit =
    if (carriedFrom >= 0) {
      buffer.keepFrom(carriedFrom)
      carriedFrom = -1
      count(buffer.start)
    } else {
      buffer.clear()
    }

  /** Reads the next block of `current`; false if it has no more. */
  private def readBlock(): Boolean = {
    val at = buffer.length
    val headerBytes = buffer.readFrom(current, BlockHeader.Length)
    if (headerBytes == 0) {
      return false
    }
    if (headerBytes < BlockHeader.Length || !BlockHeader.isPlausible(buffer.start + at)) {
      current.corrupt(s"no header at the place of one ($headerBytes bytes left)", null)
    }
    val stored = BlockHeader.storedLength(buffer.start + at)
    val read = buffer.readFrom(current, stored)
    if (read < stored) {
      current.corrupt(s"$read bytes where the header says $stored", null)
    }
    current.countBlock(BlockHeader.isLast(buffer.start + at))
    if (sources.nonEmpty && !fits(buffer.start + at)) {
      carriedFrom = at
    } else {
      count(buffer.start + at)
    }
    true
  }

  private def isFull: Boolean =
    pendingRows >= rowsPerBatch || pendingRawBytes >= BatchIterator.MaxJoinedBytes

  private def fits(header: Long): Boolean =
    pendingRows + BlockHeader.rows(header) <= rowsPerBatch &&
      pendingRawBytes + BlockHeader.rawLength(header) <= BatchIterator.MaxJoinedBytes

  private def count(header: Long): Unit = {
    sources += current
    pendingRows += BlockHeader.rows(header)
    pendingRawBytes += BlockHeader.rawLength(header)
  }

  private def decode(): ColumnarBatch = {
    // Decompressed blocks, and their rows once more when they are joined.
    val decodedBytes = if (sources.length > 1) 2 * pendingRawBytes else pendingRawBytes
    // One batch is the least to go on with, so a denial only leaves it uncharged.
    reservation.resize(buffer.capacity + math.min(decodedBytes, BatchIterator.MaxUnverifiedCharge))
    val length = if (carriedFrom >= 0) carriedFrom else buffer.length
    val rows =
      try
        Native.decodeBlocks(decoder, buffer.start, length, columns.buffers, stats)
      catch {
        case e: CometCorruptBlockException =>
          sources(e.blockIndex()).corrupt(e.getMessage, e)
      }
    serializer.metrics.decodeTime.add(stats(0))
    reservation.resize(buffer.capacity + stats(1))
    sources.clear()
    pendingRows = 0
    pendingRawBytes = 0
    // Blocks that only mark an end give no batch.
    if (rows == 0) null else columns.pointAtBuffers(rows)
  }

  private def close(): Unit = {
    val isRead = !guard.end()
    context.taskMetrics().incPeakExecutionMemory(reservation.peakMemory)
    reservation.release()
    val memory = new BatchIterator.NativeMemory(decoder, buffer)
    if (isRead) {
      // The reading thread holds this iterator for as long as it reads.
      BatchIterator.cleaner.register(this, memory)
    } else {
      memory.run()
    }
  }
}

private object BatchIterator {

  private lazy val cleaner = Cleaner.create()

  /** Frees what a decoder and its blocks hold. */
  private class NativeMemory(decoder: Long, buffer: BlockBuffer) extends Runnable {
    override def run(): Unit =
      try Native.closeBlockDecoder(decoder)
      finally buffer.close()
  }

  /** Blocks are joined up to this size: far below the 2 GiB that Arrow's 32-bit offsets can address. */
  val MaxJoinedBytes: Long = 64L << 20

  /** What is charged at most by lengths whose checksum isn't verified yet; decoding tells the rest. */
  val MaxUnverifiedCharge: Long = 2 * MaxJoinedBytes
}
