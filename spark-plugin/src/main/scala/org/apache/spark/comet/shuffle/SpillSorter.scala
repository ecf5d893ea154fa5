package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import org.apache.spark.comet.Native
import org.apache.spark.comet.memory.CometShuffleMemoryAllocator
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.LongArray

/** Rows of all partitions of a task in shared pages, with a pointer of 8 bytes to each, by which they are sorted by
  * partition. Pages and pointers are charged to Spark; half of the pointers' memory is room to sort them.
  *
  * @param initialPointers pointers that there is room for at first
  * @param spill called when Spark denies memory: writes rows out and frees what they take, by [[freeAll]] or
  *              as [[fullest]] tells; false if there are none
  */
class SpillSorter(
    allocator: CometShuffleMemoryAllocator,
    initialPointers: Long,
    spill: Long => Boolean
) extends SpillWriter(allocator) {
  import SpillSorter._

  @volatile private var pointers: LongArray = _
  private var capacity = 0

  /** Bytes of pages and pointers, for any thread. */
  override def memoryUsed: Long = super.memoryUsed + pointerBytes

  override protected def makeRoom(bytes: Long): Boolean = spill(bytes)

  /** Whether giving some pages back leaves more than a few rows in the others. */
  def hasManyPages: Boolean = numPages >= ManyPages

  /** A page of one large row, once others have its place, is full where pointers do not reach. */
  override protected def hasRoom(length: Int): Boolean =
    super.hasRoom(length) && nextOffset < MaxPageBytes

  /** Copies a row behind the others. */
  def insertRow(partition: Int, base: AnyRef, offset: Long, length: Int): Unit = {
    // Whichever of the two is made may spill, and with it free the other.
    while (numRows == capacity || !hasRoom(length))
      if (numRows == capacity) growPointers() else makePage(length)
    Platform.putLong(
      null,
      pointers.getBaseOffset + numRows.toLong * PointerBytes,
      partition.toLong << PartitionShift | (numPages - 1).toLong << PageShift | nextOffset
    )
    appendRow(base, offset, length)
  }

  /** Sorts the rows by partition, in the order in which they came within each. */
  def sorted(numPartitions: Int): SortedRows = {
    val start =
      if (numRows == 0) 0L else Native.sortRows(pointers.getBaseOffset, numRows, numPartitions)
    new SortedRows(start, numRows, filledPages())
  }

  /** The rows of the fullest partitions, about a third of all, sorted by partition; and what forgets them once they are
    * written: it moves the other rows together, gives the pages back that they leave free, and returns their bytes.
    */
  def fullest(numPartitions: Int): (SortedRows, () => Long) = {
    val count = numRows
    val base = pointers.getBaseOffset
    val sorted = Native.sortRows(base, count, numPartitions)
    val ordered = if (sorted == base) base + count.toLong * PointerBytes else base
    val chosen = Native.fullestFirst(sorted, ordered, count, count / Share + 1)
    def forget(): Long = {
      val others = ordered + chosen.toLong * PointerBytes
      Platform.copyMemory(null, others, null, base, (count - chosen).toLong * PointerBytes)
      keepRows(base, count - chosen)
    }
    (new SortedRows(ordered, chosen, filledPages()), () => forget())
  }

  /** Gives all memory back; returns its bytes. */
  def freeAll(): Long = freePages() + freePointers()

  private def pointerBytes: Long = {
    val held = pointers
    if (held == null) 0L else held.memoryBlock().size()
  }

  private def growPointers(): Unit = {
    val wanted = if (pointers == null) initialPointers else 2L * capacity
    val grown = if (wanted > MaxPointers) null else allocator.tryAllocateArray(2 * wanted)
    if (grown != null) {
      usePointers(grown)
    } else if (!spill(2 * wanted * PointerBytes)) {
      usePointers(allocator.allocateArrayOrThrow(2 * wanted))
    }
  }

  private def usePointers(grown: LongArray): Unit = {
    // Also the room to sort: native code must not see memory that nobody wrote.
    grown.zeroOut()
    if (pointers != null) {
      val used = numRows.toLong * PointerBytes
      Platform.copyMemory(null, pointers.getBaseOffset, null, grown.getBaseOffset, used)
    }
    freePointers()
    pointers = grown
    capacity = (grown.size() / 2).toInt
  }

  private def freePointers(): Long = {
    val freed = pointerBytes
    if (pointers != null) {
      allocator.freeArray(pointers)
      pointers = null
      capacity = 0
    }
    freed
  }
}

/** Pointers in the order of their partitions.
  *
  * @param start address of the first
  */
class SortedRows(start: Long, count: Int, pages: RowPages) {

  /** Encodes all rows and hands on the blocks of each partition in turn, which may come in several pieces.
    *
    * @param last whether these are the last rows of their partitions in this task
    */
  def foreachBlocks(
      encoder: RowEncoder,
      last: Boolean
  )(body: (Int, ByteBuffer) => Unit): Unit = {
    var done = 0
    while (done < count) {
      val encoded = encoder.encodeSorted(
        start + done.toLong * SpillSorter.PointerBytes,
        count - done,
        pages,
        last
      )
      encoded.foreach(body)
      done += encoded.rows
    }
  }
}

private object SpillSorter {
  // 24 bits of partition, 13 of page, 27 of offset: what Native.sortRows takes.
  val PartitionShift = 40
  val PageShift = 27

  /** Rows begin within so many bytes of a page. */
  val MaxPageBytes: Long = 1L << PageShift

  val ManyPages = 4

  /** A spill of the fullest partitions takes this part of the rows. Smaller ones make larger blocks, but move the others
    * more often: a half makes them 1.5 times as large as a spill of all rows, a third 1.7, an eighth 1.9 times.
    */
  val Share = 3

  /** Bytes of a pointer. */
  val PointerBytes = 8

  /** What the native side counts, with room to sort, in an int. */
  val MaxPointers: Long = 1L << 29
}
