package org.apache.spark.comet

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkConf

class ConfigurationDocSuite extends AnyFunSuite {

  private val page =
    Paths.get(System.getProperty("comet.test.root"), "docs", "configuration.md")

  test("docs/configuration.md is what CometConf says; scripts/build --docs writes it") {
    if (sys.env.contains("COMET_WRITE_DOCS")) {
      Files.write(page, CometConf.markdown.getBytes(UTF_8))
    }
    assert(new String(Files.readAllBytes(page), UTF_8) === CometConf.markdown)
  }

  test("a bad value is named with key, value and what is allowed") {
    val bad = new SparkConf(false).set("spark.comet.shuffle.compression.codec", "rar")
    val message = CometConf.invalidValue(bad).get
    Seq("spark.comet.shuffle.compression.codec", "'rar'", "lz4, zstd, snappy, none")
      .foreach(part => assert(message.contains(part)))
    assert(CometConf.invalidValue(new SparkConf(false)).isEmpty)
  }
}
