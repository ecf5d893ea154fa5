package org.apache.spark.comet.vector

/** Tells whether a thread may still read a task's batches when the task ends. Those that feed a script or a pipe may: the
  * task that has what it wants of their output does not wait for them.
  *
  * A reader says so and then looks whether the task is over; the task says that it is over and then looks who reads. So
  * one of them sees the other.
  */
private[comet] final class ReadGuard {

  @volatile private var reader: Thread = _
  @volatile private var ended = false

  /** Says that this thread reads. False if it must not, since the task is over. */
  def enter(): Boolean = {
    val current = Thread.currentThread()
    if (reader ne current) {
      reader = current
    }
    !ended
  }

  /** Ends the task's reading. True if nobody is in the middle of it but this thread. */
  def end(): Boolean = {
    ended = true
    val reading = reader
    reading == null || (reading eq Thread.currentThread()) || !reading.isAlive
  }
}
