package org.apache.spark.comet.memory

import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}

/** The charge for memory that native code of a task allocates itself: encode buffers and decoded batches. A task cannot go
  * on with less than one batch, so these are used even where Spark denies the charge, and the charge is given up when
  * another part of the task needs memory. What is then used beyond Spark's grant is one batch (`docs/user-guide.md`).
  */
class NativeMemoryReservation(memoryManager: TaskMemoryManager)
    extends MemoryConsumer(memoryManager, memoryManager.pageSizeBytes(), MemoryMode.OFF_HEAP) {

  private val owner = Thread.currentThread()
  private var peak = 0L

  /** The largest charge. */
  def peakMemory: Long = peak

  /** Brings the charge to `bytes`, or as near as Spark grants it. */
  def resize(bytes: Long): Unit = {
    val missing = bytes - getUsed
    if (missing > 0) {
      acquireMemory(missing)
      peak = math.max(peak, getUsed)
    } else if (missing < 0) {
      freeMemory(-missing)
    }
  }

  def release(): Unit = freeMemory(getUsed)

  // Only from the task's own thread: the charge is not to change while `resize` computes with it.
  override def spill(size: Long, trigger: MemoryConsumer): Long =
    if ((trigger eq this) || (Thread.currentThread() ne owner)) {
      0L
    } else {
      val yielded = getUsed
      freeMemory(yielded)
      yielded
    }
}
