package org.apache.spark.comet.memory

import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.{EXECUTOR_CORES, MEMORY_OFFHEAP_SIZE}
import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}

/** The memory of a task's native shuffle writer, as Spark sees it. Acquired and released from any thread, and exact: what
  * a spill on one thread gives back and what another one acquires at the same time both count.
  */
class NativeShuffleMemory(memoryManager: TaskMemoryManager, conf: SparkConf)
    extends MemoryConsumer(memoryManager, memoryManager.pageSizeBytes(), MemoryMode.OFF_HEAP) {

  private val held = new AtomicLong
  private val changing = new Object
  private val offHeap = conf.get(MEMORY_OFFHEAP_SIZE)
  private var spillable: Spillable = _

  // `used` of the parent is a plain field: additions of two threads could get lost.
  override def getUsed: Long = held.get

  /** From now on `writer` gives memory back when Spark asks for it. It must be followed by [[close]]. */
  def open(writer: Spillable): Unit = changing.synchronized {
    NativeShuffleMemory.writers.incrementAndGet()
    spillable = writer
  }

  /** The writer goes. Waits for a spill on another thread. */
  def close(): Unit = changing.synchronized {
    NativeShuffleMemory.writers.decrementAndGet()
    spillable = null
  }

  override def acquireMemory(bytes: Long): Long = {
    val granted = taskMemoryManager.acquireExecutionMemory(bytes, this)
    held.addAndGet(granted)
    granted
  }

  override def freeMemory(bytes: Long): Unit = {
    held.addAndGet(-bytes)
    taskMemoryManager.releaseExecutionMemory(bytes, this)
  }

  /** What this task may have of the off-heap memory, if it is shared evenly by the executor's tasks that write like this.
    * Spark has the last word: other tasks count for its own limit.
    */
  def limit: Long = offHeap / math.max(1, NativeShuffleMemory.writers.get)

  /** How large a buffer of this task may be: small beside what it has when all of the executor's cores write. */
  def bufferShare: Long = {
    val cores =
      conf.getOption(EXECUTOR_CORES.key).fold(Runtime.getRuntime.availableProcessors)(_.toInt)
    math.max(NativeShuffleMemory.MinBuffer, offHeap / cores / NativeShuffleMemory.Buffers)
  }

  /** The writer spills by itself when it is denied memory, so it isn't asked to on its own behalf. */
  override def spill(size: Long, trigger: MemoryConsumer): Long =
    if (trigger eq this) {
      0L
    } else {
      changing.synchronized {
        if (spillable == null) 0L else spillable.spill(size)
      }
    }
}

private object NativeShuffleMemory {

  val MinBuffer: Long = 32L << 10
  val Buffers = 64L

  /** The writers of this executor. */
  val writers = new AtomicInteger
}
