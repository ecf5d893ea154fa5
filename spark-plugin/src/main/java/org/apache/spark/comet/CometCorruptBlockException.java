package org.apache.spark.comet;

/** A shuffle block whose bytes are not those that were written. */
public final class CometCorruptBlockException extends CometNativeException {
  private final int blockIndex;

  /**
   * @param blockIndex which block of the decoded run is corrupt, from 0
   */
  public CometCorruptBlockException(String message, int blockIndex) {
    super(message);
    this.blockIndex = blockIndex;
  }

  public int blockIndex() {
    return blockIndex;
  }
}
