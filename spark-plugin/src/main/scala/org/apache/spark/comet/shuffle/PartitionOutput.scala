package org.apache.spark.comet.shuffle

import java.io.OutputStream
import java.nio.ByteBuffer
import java.util.zip.{CheckedOutputStream, Checksum}

import org.apache.spark.serializer.SerializerManager
import org.apache.spark.shuffle.api.{ShufflePartitionWriter, WritableByteChannelWrapper}

/** One partition of the final file. `checksum` (may be null) takes the bytes as they are stored, after encryption.
  * Close it whether or not writing succeeded.
  */
trait PartitionOutput extends ByteSink with AutoCloseable

object PartitionOutput {

  def open(
      writer: ShufflePartitionWriter,
      serializerManager: SerializerManager,
      checksum: Checksum
  ): PartitionOutput =
    if (serializerManager.encryptionEnabled) {
      new StreamOutput(serializerManager.wrapForEncryption(checked(writer.openStream(), checksum)))
    } else {
      val channel = writer.openChannelWrapper()
      if (channel.isPresent) {
        new ChannelOutput(channel.get, checksum)
      } else {
        new StreamOutput(checked(writer.openStream(), checksum))
      }
    }

  private def checked(stream: OutputStream, checksum: Checksum): OutputStream =
    if (checksum == null) stream else new CheckedOutputStream(stream, checksum)

  private class ChannelOutput(wrapper: WritableByteChannelWrapper, checksum: Checksum)
      extends PartitionOutput {

    override def write(bytes: ByteBuffer): Unit = {
      if (checksum != null) {
        checksum.update(bytes.duplicate())
      }
      ByteBuffers.writeFully(bytes, wrapper.channel())
    }

    override def close(): Unit = wrapper.close()
  }

  private class StreamOutput(stream: OutputStream) extends PartitionOutput {
    override def write(bytes: ByteBuffer): Unit = ByteBuffers.copy(bytes, stream)
    override def close(): Unit = stream.close()
  }
}
