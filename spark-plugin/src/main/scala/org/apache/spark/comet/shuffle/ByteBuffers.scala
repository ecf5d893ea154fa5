package org.apache.spark.comet.shuffle

import java.io.{EOFException, InputStream, OutputStream}
import java.nio.ByteBuffer
import java.nio.channels.{FileChannel, WritableByteChannel}

/** Copies between buffers, channels and streams. */
private object ByteBuffers {

  private val PieceBytes = 64 << 10

  /** Writes what remains of `bytes`; returns how much that was. */
  def writeFully(bytes: ByteBuffer, channel: WritableByteChannel): Int = {
    val count = bytes.remaining()
    while (bytes.hasRemaining)
      channel.write(bytes)
    count
  }

  /** A copy of what remains of `bytes`. */
  def toArray(bytes: ByteBuffer): Array[Byte] = {
    val copy = new Array[Byte](bytes.remaining())
    bytes.get(copy)
    copy
  }

  /** Writes what remains of `bytes` to a stream. */
  def copy(bytes: ByteBuffer, stream: OutputStream): Unit = {
    val piece = new Array[Byte](math.min(PieceBytes, bytes.remaining()))
    while (bytes.hasRemaining) {
      val count = math.min(piece.length, bytes.remaining())
      bytes.get(piece, 0, count)
      stream.write(piece, 0, count)
    }
  }
}

/** `length` bytes of a channel from `start` on; an end before that is an error. The channel's own position stays. */
private class BoundedChannelInputStream(channel: FileChannel, start: Long, length: Long)
    extends InputStream {

  private var left = length

  override def read(): Int = {
    val one = new Array[Byte](1)
    if (read(one, 0, 1) < 0) -1 else one(0) & 0xff
  }

  override def read(bytes: Array[Byte], offset: Int, count: Int): Int =
    if (left == 0) {
      -1
    } else {
      val piece = ByteBuffer.wrap(bytes, offset, math.min(count.toLong, left).toInt)
      val read = channel.read(piece, start + length - left)
      if (read < 0) {
        throw new EOFException(s"$left bytes are missing")
      }
      left -= read
      read
    }
}
