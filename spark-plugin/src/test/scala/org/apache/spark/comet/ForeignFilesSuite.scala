package org.apache.spark.comet

import java.math.{BigDecimal, BigInteger}

import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.simple.SimpleGroupFactory
import org.apache.parquet.hadoop.example.ExampleParquetWriter
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.MessageTypeParser

import org.apache.spark.sql.classic.DataFrame

/** Parquet files as Spark does not write them, but others do. */
class ForeignFilesSuite extends CometTestBase {
  import CometTestBase._

  private val rows = 5000

  private def unscaled(row: Int): BigInteger = {
    val largest = new BigInteger("9" * 38)
    row % 5 match {
      case 0 => largest.subtract(BigInteger.valueOf(row))
      case 1 => largest.negate().add(BigInteger.valueOf(row))
      case 2 => BigInteger.valueOf(-1)
      case 3 => BigInteger.valueOf(row)
      case 4 => BigInteger.valueOf(-row.toLong << 32)
    }
  }

  /** Two's complement in `bytes` bytes. */
  private def extended(value: BigInteger, bytes: Int): Binary = {
    val digits = value.toByteArray
    val sign = (if (value.signum() < 0) -1 else 0).toByte
    Binary.fromConstantByteArray(Array.fill(bytes - digits.length)(sign) ++ digits)
  }

  private def write(path: String, dictionary: Boolean): Unit = {
    val schema = MessageTypeParser.parseMessageType(
      """message decimals {
        |  required int32 id;
        |  required fixed_len_byte_array(20) fixed (DECIMAL(38, 2));
        |  optional binary free (DECIMAL(38, 2));
        |}""".stripMargin
    )
    val writer = ExampleParquetWriter.builder(new Path(path)).withType(schema)
      .withDictionaryEncoding(dictionary).build()
    try
      for (row <- 0 until rows) {
        val group = new SimpleGroupFactory(schema).newGroup().append("id", row)
          .append("fixed", extended(unscaled(row), 20))
        // As many bytes as it takes, and more.
        if (row % 7 != 0) group.append("free", extended(unscaled(row), 16 + row % 9))
        writer.write(group)
      }
    finally writer.close()
  }

  for (dictionary <- Seq(true, false); offHeap <- Seq("true", "false"))
    test(s"decimals of more bytes than they need: dictionary $dictionary, off-heap $offHeap") {
      val path = temporaryFolder().toString + "/decimals.parquet"
      write(path, dictionary)
      val expected = (0 until rows).map { row =>
        val value = new BigDecimal(unscaled(row), 2)
        (row, value, if (row % 7 == 0) null else value)
      }
      withComet(Aqe -> "false", "spark.sql.columnVector.offheap.enabled" -> offHeap) { session =>
        val df = session.read.parquet(path).repartition(5).asInstanceOf[DataFrame]
        val seen = df.collect().map(row => (row.getInt(0), row.getDecimal(1), row.getDecimal(2)))
        assert(seen.sortBy(_._1).toSeq === expected)
        val names = exchanges(df.queryExecution.executedPlan).map(_.nodeName)
        assert(names === Seq("CometShuffleExchange(native)"))
      }
    }
}
