package org.apache.spark.comet;

/** Spark denied memory to native code that had nothing left to spill. */
public final class CometOutOfMemoryException extends CometNativeException {
  private final long requested;
  private final long available;

  /**
   * @param requested the bytes that were asked for
   * @param available the bytes that could have been had
   */
  public CometOutOfMemoryException(String message, long requested, long available) {
    super(message);
    this.requested = requested;
    this.available = available;
  }

  public long requested() {
    return requested;
  }

  public long available() {
    return available;
  }
}
