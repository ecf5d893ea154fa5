package org.apache.spark.comet;

import java.nio.ByteBuffer;

/**
 * The entry points of the native library. Every call throws {@link CometNativeException} when the
 * native side fails, {@link CometCorruptBlockException} when a block does not hold what it should.
 * Handles are closed exactly once by their owner; none of the calls is safe for use of one handle
 * from two threads at a time. Load the library by {@link NativeLibrary#load()} first.
 */
public final class Native {
  private Native() {}

  /** Version and revision of the library, as {@code version+revision}. */
  static native String version();

  /** Returns an error ({@code kind} 0) or panics (1) on purpose: shows how failures surface. */
  static native void fail(int kind);

  /**
   * Makes an encoder of rows into blocks.
   *
   * @param schema the row type, as {@code SchemaDescriptor} writes it
   * @param codec 0 none, 1 lz4, 2 zstd, 3 snappy
   * @param zstdLevel level of zstd, of no meaning for other codecs
   */
  public static native long newRowEncoder(byte[] schema, int codec, int zstdLevel);

  /**
   * Encodes the rows of some pages, in order, as blocks.
   *
   * @param pages addresses of row pages: runs of [int length][row bytes]
   * @param used bytes used of each page
   * @param pageCount how many entries of the two arrays count
   * @param last whether these are the last rows of their partition; without rows this gives the
   *     block that only marks the end
   * @param stats filled with nanoseconds of encoding, nanoseconds in the codec, bytes of native
   *     memory that the encoder used, blocks (length 4)
   * @return the blocks, in native memory that is valid until the next call with this encoder
   */
  public static native ByteBuffer encodeRows(
      long encoder, long[] pages, long[] used, int pageCount, boolean last, long[] stats);

  /**
   * Sorts pointers to rows by partition; those of a partition keep their order.
   *
   * @param pointers address of {@code 2 * count} words: the pointers, each with 24 bits of partition,
   *     13 of page and 27 of offset in the page, and as much room to sort them
   * @return the address of the sorted pointers, which lie in one half of the words
   */
  public static native long sortRows(long pointers, int count, int partitions);

  /**
   * Copies sorted pointers such that those of the fullest partitions come first, then the others,
   * both sorted as before.
   *
   * @param sorted address of {@code count} pointers, as {@link #sortRows} sorts them
   * @param ordered address of as many words, which are filled
   * @param wanted how many pointers come first at least
   * @return how many come first: all of a partition, or none
   */
  public static native int fullestFirst(long sorted, long ordered, int count, int wanted);

  /**
   * Moves rows to the front of their pages, in the order in which they lie there, and puts the
   * pointers into that order.
   *
   * @param pointers address of {@code count} pointers to the rows that are to stay
   * @param pages addresses of row pages, which pointers number in this order
   * @param used bytes used of each page; changed
   * @param sizes bytes of each page
   * @param pageCount how many entries of the arrays count
   * @return how many pages have rows then
   */
  public static native int compactRows(
      long pointers, int count, long[] pages, long[] used, long[] sizes, int pageCount);

  /**
   * Encodes rows of many partitions, from the first pointer on, until about 256 KiB of blocks are made
   * or {@code partitions} is full.
   *
   * @param pointers address of the first pointer that is left, as {@link #sortRows} sorts them
   * @param count pointers that are left
   * @param pages addresses of row pages, which pointers number in this order
   * @param used bytes used of each page
   * @param pageCount how many entries of the two arrays count
   * @param blockRows the most rows of a block
   * @param last whether these are the last rows of their partitions
   * @param partitions filled with the partitions that blocks were made for
   * @param lengths filled with the bytes of their blocks, which follow one another
   * @param stats filled as by {@link #encodeRows}, and with the rows encoded and the entries of
   *     {@code partitions} that count (length 6)
   * @return the blocks, in native memory that is valid until the next call with this encoder
   */
  public static native ByteBuffer encodeSortedRows(
      long encoder,
      long pointers,
      int count,
      long[] pages,
      long[] used,
      int pageCount,
      int blockRows,
      boolean last,
      int[] partitions,
      long[] lengths,
      long[] stats);

  public static native void closeRowEncoder(long encoder);

  /** A direct buffer over {@code length} bytes at an address that stays valid while it is used. */
  public static native ByteBuffer wrap(long address, int length);

  /** Makes a decoder for blocks of rows of the given type. */
  public static native long newBlockDecoder(byte[] schema);

  /**
   * Decodes a run of whole blocks and joins them to one batch, which lives until the next call.
   *
   * @param buffer address of the first block
   * @param length bytes of all blocks
   * @param vectors filled, for each vector of the schema in pre-order, with null count, address of
   *     the validity bitmap (0 without nulls), address of the offsets (0 if none) and address of
   *     the values (0 if none)
   * @param stats filled with nanoseconds of decoding and bytes of native memory held (length 2)
   * @return rows of the batch
   * @throws CometCorruptBlockException naming the index of the block in the run
   */
  public static native int decodeBlocks(
      long decoder, long buffer, long length, long[] vectors, long[] stats);

  public static native void closeBlockDecoder(long decoder);

  /**
   * Writes rows of the batch that was decoded last as UnsafeRows, one behind the other: as many as
   * fit into {@code maxBytes}, at least one. They live until the next call of this or of {@link
   * #decodeBlocks}.
   *
   * @param first the first row to write, which the batch must have
   * @param rows filled with the address of the first row, the address of the rows' lengths (32 bits
   *     each) and bytes of native memory held (length 3)
   * @return how many rows were written
   */
  public static native int writeRows(long decoder, int first, long maxBytes, long[] rows);

  /**
   * Hands a column of the batch that was decoded last on by reference.
   *
   * @return the address of the array, for {@link NativeShuffleTask#nextBatch} to pass on; it must
   *     be released
   */
  public static native long exportColumn(long decoder, int column);

  /**
   * Makes native memory larger or smaller, or new memory of address 0; what is in both is kept.
   *
   * @param bytes its size until now
   * @return its address, 0 if there is no such memory
   */
  public static native long reallocate(long address, long bytes, long wanted);

  /** Frees memory of {@link #reallocate}, if the address is not 0. */
  public static native void free(long address, long bytes);

  /** Gives up an exported array, whether the native side took it over or not. */
  public static native void releaseArray(long array);

  /**
   * Makes a writer of a task's batches. It may be shared by threads, but closed only when none uses
   * it.
   *
   * @param schema the row type, as {@code SchemaDescriptor} writes it
   * @param partitioning as {@code NativePartitioning} writes it
   * @param dataFile the file to create
   * @param codec 0 none, 1 lz4, 2 zstd, 3 snappy
   * @param zstdLevel level of zstd, of no meaning for other codecs
   * @param blockRows the most rows of a block
   * @param maxBlockBytes about the most bytes of a block before compression
   * @param writeBufferSize bytes of writes to files
   * @param maxBufferBytes bytes of staged batches that make it spill; 0 for no limit
   * @param checksum of partitions: 0 none, 1 ADLER32, 2 CRC32, 3 CRC32C
   * @param fairPool whether each of the task's native consumers gets its share of the memory
   *     ({@code fair_unified}), or whatever Spark grants ({@code greedy_unified})
   */
  public static native long newShuffleWriter(
      byte[] schema,
      byte[] partitioning,
      String dataFile,
      int codec,
      int zstdLevel,
      int blockRows,
      long maxBlockBytes,
      long writeBufferSize,
      long maxBufferBytes,
      int checksum,
      boolean fairPool,
      NativeShuffleTask task);

  /**
   * Reads all batches of the task and writes the data file. Can be called once. Without success there
   * is no file.
   *
   * @param lengths filled with the bytes of each partition
   * @param checksums filled with the checksum of each partition, unless there is no algorithm
   * @param stats filled with rows, their bytes as UnsafeRows, batches, blocks, spills, bytes of memory
   *     and of disk spilled, peak bytes of memory; nanoseconds of importing, partitioning, gathering,
   *     encoding, in the codec and of writing; acquisitions and releases of Spark's memory, bytes
   *     acquired, nanoseconds in calls for memory (length 18)
   * @throws CometOutOfMemoryException if Spark denies memory and nothing is left to spill
   * @throws java.io.IOException naming the file that cannot be written or read
   */
  public static native void runShuffleWriter(
      long writer, long[] lengths, long[] checksums, long[] stats);

  /** Makes a writer spill what it has staged; returns the bytes of memory that are free now. */
  public static native long spillShuffleWriter(long writer, long bytes);

  /** Which native consumer of the task had how much memory, as a table. */
  public static native String shuffleMemoryTable(long writer);

  public static native void closeShuffleWriter(long writer);
}
