package org.apache.spark.comet

import java.io.File
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.util.Utils

/** Real applications by spark-submit on a cluster of two executors in JVMs of their own. The jar comes by `--jars` alone.
  * scripts/test sets SPARK_HOME to the distribution that it installed.
  */
class LocalClusterSuite extends AnyFunSuite {

  private val jar = System.getProperty("comet.test.jar")
  private val root = Paths.get(System.getProperty("comet.test.root"))
  private val job = root.resolve("spark-plugin/src/test/resources/local_cluster.py")
  private val offHeap =
    Seq("spark.memory.offHeap.enabled=true", "spark.memory.offHeap.size=256m")

  private def sparkHome: String = sys.env.getOrElse(
    "SPARK_HOME",
    fail("SPARK_HOME is not set; run this suite by scripts/test, which installs a distribution")
  )

  /** Runs the job, and returns what it and Spark printed. */
  private def submit(confs: Seq[String]): String = {
    val folder = CometTestBase.temporaryFolder()
    val output = folder.resolve("output.txt")
    val command = Seq(
      s"$sparkHome/bin/spark-submit",
      "--master",
      "local-cluster[2,1,1024]",
      "--jars",
      jar
    ) ++
      (confs ++ Seq(
        "spark.ui.enabled=false",
        "spark.unsafe.exceptionOnMemoryLeak=true",
        "spark.sql.shuffle.partitions=8",
        s"spark.local.dir=${folder.resolve("local")}",
        s"spark.sql.warehouse.dir=${folder.resolve("warehouse")}"
      ))
        .flatMap(conf => Seq("--conf", conf)) :+ job.toString
    val builder = new ProcessBuilder(command: _*)
      .directory(folder.toFile)
      .redirectErrorStream(true)
      .redirectOutput(output.toFile)
    // Executors must not find our classes anywhere but in the jar.
    Seq("CLASSPATH", "SPARK_DIST_CLASSPATH", "SPARK_TESTING", "SPARK_CONF_DIR")
      .foreach(builder.environment().remove(_))
    builder.environment().put("SPARK_LOCAL_IP", "127.0.0.1")
    val process = builder.start()
    try {
      // A class that executors lack restarts them for ever.
      val ended = process.waitFor(180, TimeUnit.SECONDS)
      val text = Files.readString(output)
      assert(ended, s"no end after 180 s:\n$text")
      assert(process.exitValue() === 0, text)
      assert(left(folder.resolve("local")).isEmpty)
      text
    } finally {
      process.descendants().forEach(p => p.destroyForcibly())
      process.destroyForcibly()
      Utils.deleteRecursively(folder.toFile)
      Utils.deleteRecursively(new File(sparkHome, "work"))
    }
  }

  /** Files that the application left. */
  private def left(folder: Path): Seq[Path] =
    if (!Files.exists(folder)) {
      Nil
    } else {
      val files = Files.walk(folder)
      try files.iterator().asScala.filter(Files.isRegularFile(_)).toList
      finally files.close()
    }

  private def assertOurs(text: String): Unit = {
    assert(text.contains("OURS True"), text)
    assert(text.contains(s"MANAGER ${CometActivation.ManagerClass}"), text)
    assert(text.contains("EXECUTORS 3"), text)
  }

  test("the plugin alone turns the shuffle on, on driver and executors") {
    assertOurs(submit(offHeap :+ "spark.plugins=org.apache.spark.comet.CometPlugin"))
  }

  test("shuffle manager and extension set by hand do, too") {
    assertOurs(submit(offHeap ++ Seq(
      s"spark.shuffle.manager=${CometActivation.ManagerClass}",
      s"spark.sql.extensions=${CometActivation.ExtensionsClass}"
    )))
  }

  test("without off-heap memory the application runs on Spark's shuffle and says why, once") {
    val text = submit(Seq("spark.plugins=org.apache.spark.comet.CometPlugin"))
    assert(text.contains("OURS False"), text)
    assert(text.linesIterator.count(_.contains("Comet Shuffle is off")) === 1, text)
    assert(text.contains("spark.memory.offHeap.enabled=true"), text)
  }
}
