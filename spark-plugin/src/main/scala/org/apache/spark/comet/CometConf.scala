package org.apache.spark.comet

import java.util.Locale

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.internal.SQLConf

/** Every option of the product: key, type, default, check and documentation. `docs/configuration.md` is generated
  * from here.
  */
object CometConf {

  val SHUFFLE_ENABLED: ConfigEntry[Boolean] = SQLConf
    .buildConf("spark.comet.shuffle.enabled")
    .doc("Whether exchanges of queries go through Comet Shuffle where they can.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(true)

  val SHUFFLE_MODE: ConfigEntry[String] = SQLConf
    .buildConf("spark.comet.shuffle.mode")
    .doc("How map output is written. jvm: rows are collected in pages and turned into columnar " +
      "blocks. auto: the best way for each exchange; in this version the same as jvm.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(Locale.ROOT))
    .checkValues(Set("auto", "jvm"))
    .createWithDefault("auto")

  val SHUFFLE_FORMAT: ConfigEntry[String] = SQLConf
    .buildConf("spark.comet.shuffle.format")
    .doc("Payload of the shuffle's blocks. ipc: an Arrow IPC stream.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(Locale.ROOT))
    .checkValues(Set("ipc"))
    .createWithDefault("ipc")

  val COMPRESSION_CODEC: ConfigEntry[String] = SQLConf
    .buildConf("spark.comet.shuffle.compression.codec")
    .doc("Codec of the shuffle's blocks. Blocks are not compressed when spark.shuffle.compress " +
      "is false.")
    .version("0.1.0")
    .stringConf
    .transform(_.toLowerCase(Locale.ROOT))
    .checkValues(Set("lz4", "zstd", "snappy", "none"))
    .createWithDefault("lz4")

  val ZSTD_LEVEL: ConfigEntry[Int] = SQLConf
    .buildConf("spark.comet.shuffle.compression.zstd.level")
    .doc("Level of the codec zstd.")
    .version("0.1.0")
    .intConf
    .checkValue(level => level >= 1 && level <= 22, "must be between 1 and 22")
    .createWithDefault(1)

  val MAX_WRITERS_PER_EXECUTOR: ConfigEntry[Int] = SQLConf
    .buildConf("spark.comet.shuffle.jvm.maxWritersPerExecutor")
    .doc(
      "An exchange goes through the bypass writer, which holds a page for each partition, only " +
        "if its partitions times spark.executor.cores (1 when unset) are at most this many."
    )
    .version("0.1.0")
    .intConf
    .checkValue(_ > 0, "must be greater than 0")
    .createWithDefault(100)

  val JVM_BATCH_SIZE: ConfigEntry[Int] = SQLConf
    .buildConf("spark.comet.shuffle.jvm.batchSize")
    .doc("Rows of a partition that are collected before they are written out as a block.")
    .version("0.1.0")
    .intConf
    .checkValue(rows => rows > 0 && rows <= (1 << 20), "must be between 1 and 1048576")
    .createWithDefault(8192)

  val BATCH_SIZE: ConfigEntry[Int] = SQLConf
    .buildConf("spark.comet.batchSize")
    .doc("Rows of a batch that the reading side of a shuffle hands on: smaller blocks are joined " +
      "up to this many rows.")
    .version("0.1.0")
    .intConf
    .checkValue(rows => rows > 0 && rows <= (1 << 20), "must be between 1 and 1048576")
    .createWithDefault(8192)

  val SIZE_IN_BYTES_MULTIPLIER: ConfigEntry[Double] = SQLConf
    .buildConf("spark.comet.shuffle.sizeInBytesMultiplier")
    .doc("Factor on the size that an exchange reports to adaptive execution, which is that of " +
      "Spark's rows. Below 1.0 more joins become broadcast joins, above 1.0 fewer.")
    .version("0.1.0")
    .doubleConf
    .checkValue(_ > 0, "must be greater than 0")
    .createWithDefault(1.0)

  val EXPLAIN_FALLBACK_ENABLED: ConfigEntry[Boolean] = SQLConf
    .buildConf("spark.comet.explain.fallback.enabled")
    .doc("Whether the reason is logged for each exchange that stays with Spark's shuffle. " +
      "explain shows it in any case.")
    .version("0.1.0")
    .booleanConf
    .createWithDefault(false)

  /** All options, in the order of the documentation. */
  val entries: Seq[ConfigEntry[_]] = Seq(
    SHUFFLE_ENABLED,
    SHUFFLE_MODE,
    SHUFFLE_FORMAT,
    COMPRESSION_CODEC,
    ZSTD_LEVEL,
    MAX_WRITERS_PER_EXECUTOR,
    JVM_BATCH_SIZE,
    BATCH_SIZE,
    SIZE_IN_BYTES_MULTIPLIER,
    EXPLAIN_FALLBACK_ENABLED
  )

  /** What is wrong with the first option in `conf` whose value cannot be taken: key, value and what is allowed. */
  def invalidValue(conf: SparkConf): Option[String] = entries.iterator.flatMap { entry =>
    try {
      conf.get(entry)
      None
    } catch {
      case e: IllegalArgumentException =>
        Some(s"${e.getMessage} Correct ${entry.key} or leave it unset.")
    }
  }.nextOption()

  /** The page `docs/configuration.md`. */
  def markdown: String = {
    val rows = entries.map { entry =>
      s"| `${entry.key}` | ${entry.defaultValueString} | ${entry.doc} |"
    }
    s"""# Configuration
       |
       |<!-- Generated from CometConf.scala by scripts/build --docs; a test compares the two. -->
       |
       |Options of Comet Shuffle, set like any option of Spark. A value that cannot be taken at the start of an
       |application leaves the application on Spark's own shuffle, with one warning that names key, value and
       |remedy; `SET` in a session refuses it.
       |
       || key | default | meaning |
       ||---|---|---|
       |${rows.mkString("\n")}
       |
       |Options of Spark that matter here:
       |
       || key | why |
       ||---|---|
       || `spark.plugins` | `org.apache.spark.comet.CometPlugin` turns the shuffle on |
       || `spark.memory.offHeap.enabled`, `spark.memory.offHeap.size` | row pages and batches live in off-heap memory; without it the application stays on Spark's shuffle |
       || `spark.shuffle.sort.bypassMergeThreshold` | exchanges with more partitions stay with Spark's shuffle in this version |
       || `spark.shuffle.compress` | false switches compression off in our blocks, too |
       || `spark.shuffle.checksum.enabled`, `spark.shuffle.checksum.algorithm` | the checksum files beside the data files, as with Spark's shuffle |
       |""".stripMargin
  }
}
