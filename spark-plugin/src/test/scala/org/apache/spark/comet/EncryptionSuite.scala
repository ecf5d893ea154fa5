package org.apache.spark.comet

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import org.apache.spark.sql.functions.{col, lit}

/** With I/O encryption nothing on disk is readable, and the answers are the same. */
class EncryptionSuite extends CometTestBase {
  import CometTestBase._

  private val marker = "a-marker-that-must-not-be-readable"

  for (
    (memory, spills) <- Seq("256m" -> false, "4m" -> true); adaptive <- Seq("true", "false");
    partitions <- Seq(6, 210)
  )
    test(s"encrypted shuffle, off-heap memory $memory, AQE $adaptive, $partitions partitions") {
      withComet(
        "spark.io.encryption.enabled" -> "true",
        Codec -> "none",
        Aqe -> adaptive,
        OffHeapSize -> memory
      ) { session =>
        val df = session.range(0, 60000, 1, 2)
          .select(col("id"), lit(marker).as("text"), col("id").cast("string").as("other"))
          .repartition(partitions, col("id"))
        val seen = df.queryExecution.toRdd
          .map(row => (row.getLong(0), row.getString(1), row.getString(2)))
          .collect()
        assert(seen.toSeq.sortBy(_._1) === (0L until 60000L).map(id => (id, marker, id.toString)))
        val exchange = assertComet(df).head
        assert((exchange.metrics("spillCount").value > 0) === spills)
        val files = localFiles().filter(_.getName.endsWith(".data"))
        assert(files.nonEmpty)
        files.foreach { file =>
          val text = new String(Files.readAllBytes(file.toPath), UTF_8)
          assert(!text.contains(marker), s"$file is readable")
        }
      }
    }
}
