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
}
