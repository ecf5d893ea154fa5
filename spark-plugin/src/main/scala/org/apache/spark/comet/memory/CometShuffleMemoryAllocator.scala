package org.apache.spark.comet.memory

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.memory.{
  MemoryConsumer,
  MemoryMode,
  SparkOutOfMemoryError,
  TaskMemoryManager
}
import org.apache.spark.unsafe.array.LongArray
import org.apache.spark.unsafe.memory.MemoryBlock

/** What can give memory of a task back by writing it to disk. */
trait Spillable {

  /** Spills until `bytes` are freed or nothing is left; returns the bytes freed. */
  def spill(bytes: Long): Long
}

/** Off-heap pages for one task's shuffle writer, each charged to Spark's memory manager. A request is rounded up to
  * `pageSize`.
  *
  * Spark may ask for memory on behalf of another consumer of the task, from any thread. The spill is done if the writer
  * waits for its next row at that moment: while it moves a row it must not lose its page, and waiting for it with Spark's
  * lock held could deadlock.
  */
class CometShuffleMemoryAllocator(memoryManager: TaskMemoryManager, pageSize: Long)
    extends MemoryConsumer(memoryManager, pageSize, MemoryMode.OFF_HEAP) {

  // Who has the pages: the writer, or a thread that makes it spill.
  private val busy = new AtomicBoolean(false)
  @volatile private var spillable: Spillable = _
  private var peak = 0L

  /** The part of the task that holds the pages, or null when it no longer gives any back. */
  def setSpillable(owner: Spillable): Unit = spillable = owner

  /** The largest number of bytes held at a time. */
  def peakMemory: Long = peak

  /** A page of at least `request` bytes, or null if Spark denies it. */
  def tryAllocate(request: Long): MemoryBlock = orNull(allocateOrThrow(request))

  /** Spark's own out-of-memory error, for a request that is denied with nothing left to spill. */
  def allocateOrThrow(request: Long): MemoryBlock = noting(allocatePage(request))

  def free(page: MemoryBlock): Unit = freePage(page)

  /** Room for exactly `words` words of 8 bytes, or null if Spark denies it. */
  def tryAllocateArray(words: Long): LongArray = orNull(allocateArrayOrThrow(words))

  /** As [[allocateOrThrow]], for exactly `words` words of 8 bytes. */
  def allocateArrayOrThrow(words: Long): LongArray = noting(allocateArray(words))

  private def noting[T](allocated: T): T = {
    peak = math.max(peak, getUsed)
    allocated
  }

  private def orNull[T >: Null](allocate: => T): T =
    try allocate
    catch {
      // That another operator failed to spill is no denial: it has lost its place, and the task must fail.
      case e: SparkOutOfMemoryError if e.getCondition != "SPILL_OUT_OF_MEMORY" => null
    }

  /** Runs `body` with the pages kept in place. It must not be nested. */
  def exclusively[T](body: => T): T = {
    // Whoever makes the writer spill waits for nothing of the writer's.
    while (!busy.compareAndSet(false, true))
      Thread.`yield`()
    try body
    finally busy.set(false)
  }

  override def spill(size: Long, trigger: MemoryConsumer): Long =
    if ((trigger eq this) || spillable == null || !busy.compareAndSet(false, true)) {
      0L
    } else {
      try spillable.spill(size)
      finally busy.set(false)
    }
}
