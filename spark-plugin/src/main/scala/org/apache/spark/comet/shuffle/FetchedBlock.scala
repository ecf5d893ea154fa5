package org.apache.spark.comet.shuffle

import java.io.InputStream

import org.apache.spark.storage.BlockId

/** What Spark fetched as one block: the runs of one or more partitions, each a sequence of our blocks.
  *
  * @param outer Spark's stream over `inner`, which reports a failure of `inner` as a fetch failure
  * @param expectedRuns number of partitions in it that have rows, or 0 if unknown
  */
private class FetchedBlock(
    blockId: BlockId,
    outer: InputStream,
    inner: BlockInputStream,
    expectedRuns: Int
) {

  private var runs = 0
  private var endsWithRun = false

  /** Counts a block of ours that was read. */
  def countBlock(last: Boolean): Unit = {
    endsWithRun = last
    if (last) runs += 1
  }

  /** Reads up to `count` bytes; returns -1 at the end. */
  def read(bytes: Array[Byte], count: Int): Int = outer.read(bytes, 0, count)

  /** Fails if the block ended before what its map task wrote. */
  def checkComplete(): Unit =
    if (!endsWithRun || (expectedRuns > 0 && runs != expectedRuns)) {
      corrupt(s"it ends early, after $runs of ${math.max(expectedRuns, 1)} partitions", null)
    }

  /** Reports the block as a fetch failure, so that its map stage runs again. */
  def corrupt(problem: String, cause: Throwable): Nothing = {
    val message = s"Shuffle block $blockId is corrupt: $problem"
    inner.fail(message, cause)
    outer.read()
    throw new IllegalStateException(message, cause)
  }

  def close(): Unit = outer.close()
}
