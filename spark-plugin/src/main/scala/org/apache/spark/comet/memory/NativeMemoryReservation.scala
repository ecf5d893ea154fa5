package org.apache.spark.comet.memory

import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}

/** The charge for memory that native code of a task allocates itself, such as encode buffers and decoded batches. */
class NativeMemoryReservation(memoryManager: TaskMemoryManager)
    extends MemoryConsumer(memoryManager, memoryManager.pageSizeBytes(), MemoryMode.OFF_HEAP) {

  private var peak = 0L

  /** The largest charge. */
  def peakMemory: Long = peak

  /** Brings the charge to `bytes`; returns whether Spark granted all of it. What was granted stays charged. */
  def resize(bytes: Long): Boolean = {
    val missing = bytes - getUsed
    if (missing > 0) {
      acquireMemory(missing)
      peak = math.max(peak, getUsed)
    } else if (missing < 0) {
      freeMemory(-missing)
    }
    getUsed >= bytes
  }

  def release(): Unit = freeMemory(getUsed)

  override def spill(size: Long, trigger: MemoryConsumer): Long = 0L
}
