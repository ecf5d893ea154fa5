package org.apache.spark.comet.shuffle

import java.io.{File, IOException, InputStream, OutputStream}
import java.nio.ByteBuffer
import java.nio.channels.{Channels, FileChannel}
import java.nio.file.StandardOpenOption.{CREATE, READ, WRITE}

import org.apache.spark.serializer.SerializerManager
import org.apache.spark.storage.DiskBlockManager

/** The bytes of an extent, written to or read from the one spill file of a task. */
trait ByteSink {
  def write(bytes: ByteBuffer): Unit
}

/** The one file that a map task spills to, made when it is first needed: extents, one behind the other. With I/O
  * encryption each extent is a stream of its own.
  */
class SpillFile(diskBlockManager: DiskBlockManager, serializerManager: SerializerManager)
    extends AutoCloseable {

  private var file: File = _
  private var channel: FileChannel = _
  private var end = 0L

  /** Bytes in the file. */
  def length: Long = end

  /** Appends an extent; returns its bytes in the file, which end at [[length]]. */
  def append(bytes: ByteBuffer): Long =
    if (serializerManager.encryptionEnabled) {
      appendStream(ByteBuffers.copy(bytes, _))
    } else {
      withPath {
        open()
        val written = ByteBuffers.writeFully(bytes, channel.position(end))
        end += written
        written.toLong
      }
    }

  /** Appends what `body` writes as an extent; returns its bytes in the file, which end at [[length]]. */
  def appendStream(body: OutputStream => Unit): Long = withPath {
    open()
    val start = end
    val stream = serializerManager.wrapForEncryption(output)
    try body(stream)
    finally stream.close()
    end - start
  }

  /** An extent's bytes. Several may be read by turns. */
  def openStream(offset: Long, length: Long): InputStream = withPath {
    serializerManager.wrapForEncryption(new BoundedChannelInputStream(channel, offset, length))
  }

  /** Reads an extent, in pieces. */
  def read(offset: Long, length: Long, sink: ByteSink): Unit = {
    val stream = openStream(offset, length)
    withPath {
      try {
        val piece = new Array[Byte](SpillFile.PieceBytes)
        var count = stream.read(piece)
        while (count >= 0) {
          sink.write(ByteBuffer.wrap(piece, 0, count))
          count = stream.read(piece)
        }
      } finally
        // Frees what decryption holds; the channel stays open.
        stream.close()
    }
  }

  /** Closes and deletes the file. */
  override def close(): Unit = if (file != null) {
    val deleting = file
    file = null
    try
      if (channel != null) channel.close()
    finally
      if (!deleting.delete() && deleting.exists()) {
        throw new IOException(s"The spill file $deleting cannot be deleted")
      }
  }

  private def open(): Unit = if (file == null) {
    file = diskBlockManager.createTempShuffleBlock()._2
    channel = FileChannel.open(file.toPath, CREATE, READ, WRITE)
  }

  // Leaves the channel open when an encrypting stream over it is closed.
  private def output: OutputStream = new OutputStream {
    private val target = Channels.newOutputStream(channel.position(end))
    override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)
    override def write(bytes: Array[Byte], offset: Int, count: Int): Unit = {
      target.write(bytes, offset, count)
      end += count
    }
  }

  /** Runs `body`, whose I/O errors are said to be this file's. */
  def withPath[T](body: => T): T =
    try body
    catch {
      case e: IOException =>
        throw new IOException(
          s"Spilling to ${Option(file).getOrElse("a new file")} failed: " +
            e.getMessage,
          e
        )
    }
}

private object SpillFile {
  val PieceBytes: Int = 256 << 10
}
