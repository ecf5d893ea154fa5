package org.apache.spark.comet.suites

import java.io.{PrintWriter, StringWriter}

import org.scalatest.Reporter
import org.scalatest.events._

/** Writes how each test ended. */
class EventReporter extends Reporter {

  override def apply(event: Event): Unit = event match {
    case e: RunStarting => Events.write("run", "tests" -> e.testCount)
    case e: TestStarting => Events.write("start", "test" -> e.testName)
    case e: TestSucceeded => ended("passed", e.testName, e.duration)
    case e: TestPending => ended("canceled", e.testName, e.duration)
    case e: TestIgnored => ended("ignored", e.testName, None)
    case e: TestCanceled => ended("canceled", e.testName, e.duration, e.message)
    case e: TestFailed => ended("failed", e.testName, e.duration, e.message, e.throwable)
    case e: SuiteAborted => aborted(e.message, e.throwable)
    case e: RunAborted => aborted(e.message, e.throwable)
    case _: RunCompleted => Events.write("complete")
    case _ =>
  }

  private def ended(
      how: String,
      test: String,
      milliseconds: Option[Long],
      message: String = "",
      error: Option[Throwable] = None
  ): Unit = Events.write(
    how,
    "test" -> test,
    "seconds" -> milliseconds.fold(0.0)(_ / 1000.0),
    "message" -> message,
    "trace" -> trace(error)
  )

  private def aborted(message: String, error: Option[Throwable]): Unit =
    Events.write("aborted", "message" -> message, "trace" -> trace(error))

  // Plans in messages run to hundreds of KB.
  private def trace(error: Option[Throwable]): String = error.fold("") { e =>
    val text = new StringWriter()
    e.printStackTrace(new PrintWriter(text, true))
    text.toString.take(100000)
  }
}
