package org.apache.spark.comet;

import java.io.IOException;

/**
 * What a native shuffle writer asks of its task. All but the memory calls come from the thread that
 * runs the writer; those may come from any thread that makes the writer spill. What a method throws
 * ends the run of the writer and is thrown by it.
 */
public interface NativeShuffleTask {

  /**
   * Makes the next batch ready.
   *
   * @param budget the bytes that the batch may take, here and on the native side, if it has more
   *     than one row
   * @return the address of its descriptor (see {@code native/vector}), which stays valid with all it
   *     refers to until the next call, but for memory that is handed over; 0 if there are no more batches
   */
  long nextBatch(long budget) throws IOException;

  /**
   * Describes the first half of the batch that {@link #nextBatch} described, which was too large;
   * the rest comes with the next calls of that.
   */
  long splitBatch() throws IOException;

  /**
   * Copies bytes of an array that the descriptor refers to by number.
   *
   * @param array the number
   * @param offset the first byte
   * @param address where they go
   */
  void copyArray(long array, long offset, long address, long bytes);

  /** Acquires up to {@code bytes} of the task's off-heap memory and returns how many it got. */
  long acquireMemory(long bytes);

  void releaseMemory(long bytes);

  /** The bytes that the task may have at present, those that it has included. */
  long memoryLimit();

  /** A new file for spills. */
  String spillFile() throws IOException;

  boolean isKilled();
}
