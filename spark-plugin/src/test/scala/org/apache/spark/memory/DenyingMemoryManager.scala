package org.apache.spark.memory

import org.apache.spark.{SparkConf, SparkEnv}

/** Denies the first `inARow` requests of a task that holds memory, then grants one: it must spill, or do without. */
class DenyingMemoryManager(conf: SparkConf, inARow: Int)
    extends UnifiedMemoryManager(conf, 1L << 30, 1L << 29, 2) {

  private var deniedInARow = Map.empty[Long, Int].withDefaultValue(0)
  var denied = 0

  override private[memory] def acquireExecutionMemory(
      bytes: Long,
      task: Long,
      mode: MemoryMode
  ): Long = synchronized {
    val begun = deniedInARow(task)
    val deny = mode == MemoryMode.OFF_HEAP && getExecutionMemoryUsageForTask(task) > 0 &&
      begun < inARow
    if (deny) {
      denied += 1
      deniedInARow += task -> (begun + 1)
      0L
    } else {
      deniedInARow -= task
      super.acquireExecutionMemory(bytes, task, mode)
    }
  }
}

object DenyingMemoryManager {
  def install(manager: DenyingMemoryManager): Unit = {
    val field = classOf[SparkEnv].getDeclaredField("_memoryManager")
    field.setAccessible(true)
    field.set(SparkEnv.get, manager)
  }
}
