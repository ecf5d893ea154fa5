package org.apache.spark.comet.shuffle

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
  private var heldBytes = 0L
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
    val required = SpillWriter.LengthBytes + length.toLong
    if (pageEnd - cursor < required) {
      addPage(required)
    }
    Platform.putInt(null, cursor, length)
    Platform.copyMemory(base, offset, null, cursor + SpillWriter.LengthBytes, length)
    cursor += required
    rowCount += 1
  }

  /** Hands over addresses, used bytes and number of the pages. */
  protected def usePages[T](body: (Array[Long], Array[Long], Int) => T): T = {
    closePage()
    body(addresses, usedBytes, pageCount)
  }

  /** Gives all pages back; returns their bytes. */
  def freePages(): Long = {
    val freed = heldBytes
    while (pageCount > 0) {
      pageCount -= 1
      allocator.free(pages(pageCount))
      pages(pageCount) = null
    }
    cursor = 0
    pageEnd = 0
    heldBytes = 0
    rowCount = 0
    freed
  }

  private def addPage(required: Long): Unit = {
    var page = allocator.tryAllocate(nextPageRequest(required))
    while (page == null)
      // Making room may write out this writer's own rows, after which it asks for less.
      page =
        if (makeRoom(nextPageRequest(required))) {
          allocator.tryAllocate(nextPageRequest(required))
        } else {
          allocator.allocateOrThrow(required)
        }
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
