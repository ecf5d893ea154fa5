package org.apache.spark.comet.shuffle

import org.apache.spark.comet.Native
import org.apache.spark.comet.memory.CometShuffleMemoryAllocator
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.memory.MemoryBlock

/** Rows in off-heap pages: runs of [int length][row bytes]. Subclasses say how large pages are and where the rows go.
  */
abstract class SpillWriter(allocator: CometShuffleMemoryAllocator) {

  private var pages = new Array[MemoryBlock](8)
  private var addresses = new Array[Long](8)
  private var usedBytes = new Array[Long](8)
  private var pageCount = 0
  private var cursor = 0L
  private var pageEnd = 0L
  // Read by other threads, too.
  @volatile private var heldBytes = 0L
  private var rowCount = 0

  /** Size to ask for when a row of `required` bytes, its length included, needs a new page. */
  protected def nextPageRequest(required: Long): Long = required

  /** Frees memory of the task after a page was denied; false if there is nothing left to free. */
  protected def makeRoom(bytes: Long): Boolean

  /** Bytes of the pages held. */
  def memoryUsed: Long = heldBytes

  /** Rows in the pages. */
  def numRows: Int = rowCount

  /** Pages held. */
  protected def numPages: Int = pageCount

  /** Copies a row behind the others. */
  def insertRow(base: AnyRef, offset: Long, length: Int): Unit = {
    if (!hasRoom(length)) {
      makePage(length)
    }
    appendRow(base, offset, length)
  }

  /** Whether a row of `length` bytes fits in the last page. */
  protected def hasRoom(length: Int): Boolean =
    pageEnd - cursor >= SpillWriter.LengthBytes + length.toLong

  /** Copies a row into the last page, where it fits. */
  protected def appendRow(base: AnyRef, offset: Long, length: Int): Unit = {
    Platform.putInt(null, cursor, length)
    Platform.copyMemory(base, offset, null, cursor + SpillWriter.LengthBytes, length)
    cursor += SpillWriter.LengthBytes + length.toLong
    rowCount += 1
  }

  /** Where in the last page the next row goes. */
  protected def nextOffset: Long = cursor - addresses(pageCount - 1)

  /** The pages with all rows, until the next row. */
  protected def filledPages(): RowPages = {
    closePage()
    RowPages(addresses, usedBytes, pageCount)
  }

  /** Gives all pages back; returns their bytes. */
  def freePages(): Long = {
    rowCount = 0
    freePagesFrom(0)
  }

  /** Keeps the rows of `count` pointers alone, moved together, and gives the pages back that they leave free; returns
    * their bytes.
    *
    * @param pointers address of the pointers, which are changed
    */
  protected def keepRows(pointers: Long, count: Int): Long = {
    val filled = filledPages()
    val sizes = pages.take(pageCount).map(_.size())
    val left = Native.compactRows(pointers, count, addresses, usedBytes, sizes, filled.count)
    rowCount = count
    freePagesFrom(left)
  }

  private def freePagesFrom(first: Int): Long = {
    val before = heldBytes
    while (pageCount > first) {
      pageCount -= 1
      heldBytes -= pages(pageCount).size()
      allocator.free(pages(pageCount))
      pages(pageCount) = null
    }
    if (pageCount == 0) {
      cursor = 0
      pageEnd = 0
    } else {
      val last = pageCount - 1
      cursor = addresses(last) + usedBytes(last)
      pageEnd = addresses(last) + pages(last).size()
    }
    before - heldBytes
  }

  /** Makes room for a row of `length` bytes: in a new page, unless making room for one leaves enough in the last. */
  protected def makePage(length: Int): Unit = {
    val required = SpillWriter.LengthBytes + length.toLong
    var page = allocator.tryAllocate(nextPageRequest(required))
    while (page == null && !hasRoom(length))
      // Making room may write out this writer's own rows, after which it asks for less.
      if (!makeRoom(nextPageRequest(required))) {
        page = allocator.allocateOrThrow(required)
      } else if (!hasRoom(length)) {
        page = allocator.tryAllocate(nextPageRequest(required))
      }
    if (page != null) {
      addPage(page)
    }
  }

  private def addPage(page: MemoryBlock): Unit = {
    closePage()
    if (pageCount == pages.length) {
      pages = java.util.Arrays.copyOf(pages, 2 * pageCount)
      addresses = java.util.Arrays.copyOf(addresses, 2 * pageCount)
      usedBytes = java.util.Arrays.copyOf(usedBytes, 2 * pageCount)
    }
    pages(pageCount) = page
    addresses(pageCount) = page.getBaseOffset
    pageCount += 1
    heldBytes += page.size()
    cursor = page.getBaseOffset
    pageEnd = cursor + page.size()
  }

  private def closePage(): Unit = if (pageCount > 0) {
    usedBytes(pageCount - 1) = cursor - addresses(pageCount - 1)
  }
}

object SpillWriter {

  /** Bytes of the length in front of each row. */
  val LengthBytes = 4
}
