package org.apache.spark.comet.shuffle

import java.io.{FilterInputStream, IOException, InputStream}

/** The bytes of one fetched shuffle block, under Spark's own stream. When the reader finds them corrupt, the stream
  * fails with an IOException, which Spark's stream turns into a fetch failure with the right addresses and diagnosis.
  */
private class BlockInputStream(in: InputStream) extends FilterInputStream(in) {

  private var failure: IOException = _

  /** Lets every further read fail. */
  def fail(message: String, cause: Throwable): Unit = failure = new IOException(message, cause)

  private def check(): Unit = if (failure != null) throw failure

  override def read(): Int = {
    check()
    super.read()
  }

  override def read(bytes: Array[Byte], offset: Int, count: Int): Int = {
    check()
    super.read(bytes, offset, count)
  }
}
