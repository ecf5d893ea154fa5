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

/** `length` bytes of a channel from its position on; an end before that is an error. */
private class BoundedChannelInputStream(channel: FileChannel, length: Long) extends InputStream {

  private var left = length

  override def read(): Int = {
    val one = new Array[Byte](1)
    if (read(one, 0, 1) < 0) -1 else one(0) & 0xff
  }

  override def read(bytes: Array[Byte], offset: Int, count: Int): Int =
    if (left == 0) {
      -1
    } else {
      val read =
        channel.read(ByteBuffer.wrap(bytes, offset, math.min(count.toLong, left).toInt))
      if (read < 0) {
        throw new EOFException(s"$left bytes are missing")
      }
      left -= read
      read
    }
}
