package org.apache.spark.comet;

/** A failure of the native library, with the message of the native side. */
public class CometNativeException extends RuntimeException {
  public CometNativeException(String message) {
    super(message);
  }

  public CometNativeException(String message, Throwable cause) {
    super(message, cause);
  }
}
