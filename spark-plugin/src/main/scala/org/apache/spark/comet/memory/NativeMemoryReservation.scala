package org.apache.spark.comet.memory

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}

/** The charge for memory that native code of a task allocates itself: encode buffers and decoded batches. A task cannot go
  * on with less than one batch, so these are used even where Spark denies the charge, and the charge is given up when
  * another part of the task needs memory. What is then used beyond Spark's grant is one batch (`docs/user-guide.md`).
  */
class NativeMemoryReservation(memoryManager: TaskMemoryManager)
    extends MemoryConsumer(memoryManager, memoryManager.pageSizeBytes(), MemoryMode.OFF_HEAP) {

  // Python's writer threads may read a shuffle, and Spark may ask from any thread. Taken without blocking where Spark's
  // own lock is held.
  private val changing = new AtomicBoolean(false)
  @volatile private var released = false
  @volatile private var peak = 0L

  /** The largest charge. */
  def peakMemory: Long = peak

  /** Brings the charge to `bytes`, or as near as Spark grants it. Without effect once it is released. */
  def resize(bytes: Long): Unit = exclusively {
    if (!released) {
      change(bytes)
    }
  }

  /** Gives the charge back for good: a thread that reads on beyond the end of its task must not charge it again. */
  def release(): Unit = exclusively {
    released = true
    change(0)
  }

  private def change(bytes: Long): Unit = {
    val missing = bytes - getUsed
    if (missing > 0) {
      acquireMemory(missing)
      peak = math.max(peak, getUsed)
    } else if (missing < 0) {
      freeMemory(-missing)
    }
  }

  private def exclusively(body: => Unit): Unit = {
    // Whoever changes it in `spill` already has all locks that it needs.
    while (!changing.compareAndSet(false, true))
      Thread.onSpinWait()
    try body
    finally changing.set(false)
  }

  override def spill(size: Long, trigger: MemoryConsumer): Long =
    if ((trigger eq this) || !changing.compareAndSet(false, true)) {
      0L
    } else {
      try {
        val yielded = getUsed
        freeMemory(yielded)
        yielded
      } finally
        changing.set(false)
    }
}
