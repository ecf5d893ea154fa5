package org.apache.spark.comet.suites

import java.io.{FileOutputStream, OutputStreamWriter, PrintWriter}
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.ObjectMapper

/** The file that scripts/spark-suites reads: one JSON object a line, written at once, so that a JVM that is killed has
  * told all that happened until then.
  */
object Events {

  private val mapper = new ObjectMapper()

  private lazy val file: Option[PrintWriter] =
    sys.props.get("comet.suites.events").map { path =>
      new PrintWriter(new OutputStreamWriter(new FileOutputStream(path, true), UTF_8), true)
    }

  def write(event: String, fields: (String, Any)*): Unit = {
    val line = new java.util.LinkedHashMap[String, Any]()
    line.put("event", event)
    fields.foreach { case (name, value) => line.put(name, value) }
    synchronized(file.foreach(_.println(mapper.writeValueAsString(line))))
  }
}
