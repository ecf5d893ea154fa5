package org.apache.spark.comet.shuffle

import org.apache.spark.unsafe.Platform

/** What the reader must know of a block before the native side decodes it: how long it is. The whole header is checked
  * there, with its checksum (`docs/block-format.md`).
  */
private object BlockHeader {

  /** Bytes of a header. */
  val Length = 40

  private val Magic: Short = 0x4243 // "CB", little-endian
  private val FlagsOffset = 5
  private val RowsOffset = 16
  private val RawLengthOffset = 24
  private val StoredLengthOffset = 32
  private val LastFlag = 1
  // The format's own limit, far below what sums of lengths can hold.
  private val MaxLength = 1L << 40

  /** Whether the header at `address` can be one of ours at all. */
  def isPlausible(address: Long): Boolean =
    Platform.getShort(null, address) == Magic && isLength(storedLength(address)) &&
      isLength(rawLength(address)) && rows(address) >= 0

  private def isLength(bytes: Long): Boolean = bytes >= 0 && bytes <= MaxLength

  /** Whether the block is the last that its map task wrote for its partition. */
  def isLast(address: Long): Boolean =
    (Platform.getByte(null, address + FlagsOffset) & LastFlag) != 0

  def rows(address: Long): Int = Platform.getInt(null, address + RowsOffset)

  /** Bytes of the payload before compression. */
  def rawLength(address: Long): Long = Platform.getLong(null, address + RawLengthOffset)

  /** Bytes behind the header. */
  def storedLength(address: Long): Long = Platform.getLong(null, address + StoredLengthOffset)
}
