package org.apache.spark.comet

import java.util.Locale

import scala.util.Try

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.internal.SQLConf

/** One option. SQLConf knows it as a string, whatever its type: a bad value must not keep Spark from making a session,
  * as it would with a typed entry.
  *
  * @param allowed what a value must be, for messages
  * @param parse the value of a string, if it is allowed
  */
final class CometOption[T](
    val key: String,
    val defaultText: String,
    allowed: String,
    val doc: String,
    parse: String => Option[T]
) {

  // Spark's registry is one for the JVM, in which a second class loader may have this class as well.
  ConfigEntry.synchronized {
    if (ConfigEntry.findEntry(key) == null) {
      SQLConf.buildConf(key).doc(doc).version("0.1.0").stringConf.createWithDefault(
        defaultText
      )
    }
  }

  /** The value in an application. */
  def get(conf: SparkConf): T = valueOf(conf.getOption(key))

  /** The value in a session, which may change while it runs. */
  def get(conf: SQLConf): T = valueOf(Option(conf.getConfString(key, null)))

  /** What is wrong with the value, if anything: key, value, what is allowed, and the remedy. */
  def problem(conf: SparkConf): Option[String] = problem(conf.getOption(key))

  def problem(conf: SQLConf): Option[String] = problem(Option(conf.getConfString(key, null)))

  private def problem(value: Option[String]): Option[String] =
    value.filter(parse(_).isEmpty).map { bad =>
      s"$key is '$bad' but must be $allowed. Correct it, or leave it unset for the default, $defaultText."
    }

  private def valueOf(value: Option[String]): T = parse(value.getOrElse(defaultText)).getOrElse(
    throw new IllegalArgumentException(problem(value).get)
  )
}

/** Every option of the product. `docs/configuration.md` is generated from here. */
object CometConf {

  private def boolean(key: String, default: Boolean, doc: String): CometOption[Boolean] =
    new CometOption(key, default.toString, "true or false", doc, _.trim.toBooleanOption)

  private def int(key: String, default: Int, min: Int, max: Int, doc: String): CometOption[Int] =
    new CometOption(
      key,
      default.toString,
      s"a whole number from $min to $max",
      doc,
      _.trim.toIntOption.filter(value => value >= min && value <= max)
    )

  private def oneOf(key: String, values: Seq[String], doc: String): CometOption[String] =
    new CometOption(
      key,
      values.head,
      s"one of ${values.mkString(", ")}",
      doc,
      text => Some(text.trim.toLowerCase(Locale.ROOT)).filter(values.contains)
    )

  private def bytes(key: String, default: String, min: Long, doc: String): CometOption[Long] =
    new CometOption(
      key,
      default,
      s"a number of bytes from $min, such as 1m",
      doc,
      text =>
        Try(JavaUtils.byteStringAsBytes(text.trim)).toOption.filter(size =>
          size >= min && size <= Int.MaxValue
        )
    )

  private val MaxRows = 1 << 20

  val SHUFFLE_ENABLED: CometOption[Boolean] = boolean(
    "spark.comet.shuffle.enabled",
    default = true,
    "Whether exchanges of queries go through Comet Shuffle where they can."
  )

  val SHUFFLE_MODE: CometOption[String] = oneOf(
    "spark.comet.shuffle.mode",
    Seq("auto", "native", "jvm"),
    "How map output is written. native: batches of a columnar input are partitioned and written in " +
      "native code; exchanges for which that cannot be done stay with Spark's shuffle. jvm: rows are " +
      "collected in pages and turned into columnar blocks; a columnar input is turned into rows " +
      "first. auto: native where it can be done, else jvm."
  )

  val SHUFFLE_FORMAT: CometOption[String] = oneOf(
    "spark.comet.shuffle.format",
    Seq("ipc"),
    "Payload of the shuffle's blocks. ipc: an Arrow IPC stream."
  )

  val COMPRESSION_CODEC: CometOption[String] = oneOf(
    "spark.comet.shuffle.compression.codec",
    Seq("lz4", "zstd", "snappy", "none"),
    "Codec of the shuffle's blocks: lz4, zstd, snappy or none. Blocks are not compressed when " +
      "spark.shuffle.compress is false."
  )

  val ZSTD_LEVEL: CometOption[Int] = int(
    "spark.comet.shuffle.compression.zstd.level",
    default = 1,
    min = 1,
    max = 22,
    "Level of the codec zstd."
  )

  val MAX_WRITERS_PER_EXECUTOR: CometOption[Int] = int(
    "spark.comet.shuffle.jvm.maxWritersPerExecutor",
    default = 100,
    min = 1,
    max = Int.MaxValue,
    "Rows go through the bypass writer, which holds a page for each partition, only if there are at " +
      "most spark.shuffle.sort.bypassMergeThreshold partitions, and partitions times " +
      "spark.executor.cores (1 when unset) are at most this many. Else they are sorted by partition."
  )

  val JVM_BATCH_SIZE: CometOption[Int] = int(
    "spark.comet.shuffle.jvm.batchSize",
    default = 8192,
    min = 1,
    max = MaxRows,
    "Rows of a partition that are collected before they are written out as a block."
  )

  val WRITE_BUFFER_SIZE: CometOption[Long] = bytes(
    "spark.comet.shuffle.native.writeBufferSize",
    default = "1m",
    min = 4096,
    "Size of the native writer's writes to files, for each file of a task that is being written; less " +
      "where off-heap memory is short: at most a 64th of it for each core."
  )

  val MAX_BUFFER_BYTES: CometOption[Long] = bytes(
    "spark.comet.shuffle.native.maxBufferBytes",
    default = "0",
    min = 0,
    "The native writer of a task spills when it has staged this many bytes. 0: only when memory is " +
      "short."
  )

  val MEMORY_POOL: CometOption[String] = oneOf(
    "spark.comet.exec.memoryPool",
    Seq("fair_unified", "greedy_unified"),
    "How the native consumers of a task share its off-heap memory. fair_unified: each that can spill " +
      "gets an equal share of what the task may have. greedy_unified: whatever Spark grants."
  )

  val BATCH_SIZE: CometOption[Int] = int(
    "spark.comet.batchSize",
    default = 8192,
    min = 1,
    max = MaxRows,
    "Rows of a batch that the reading side of a shuffle hands on: smaller blocks are joined up to " +
      "this many rows. Also the most rows of a block that the native writer makes."
  )

  val SIZE_IN_BYTES_MULTIPLIER: CometOption[Double] = new CometOption(
    "spark.comet.shuffle.sizeInBytesMultiplier",
    "1.0",
    "a number greater than 0",
    "Factor on the size that an exchange reports to adaptive execution, which is that of Spark's " +
      "rows. Below 1.0 more joins become broadcast joins, above 1.0 fewer.",
    text => Try(text.trim.toDouble).toOption.filter(value => value > 0 && !value.isInfinite)
  )

  val COLUMNAR_TO_ROW_ENABLED: CometOption[Boolean] = boolean(
    "spark.comet.columnarToRow.enabled",
    default = true,
    "Whether rows are made of a shuffle's batches in native code, for operators that take rows as a " +
      "whole, such as sorts. Operators whose generated code reads single columns get them from Spark's " +
      "ColumnarToRow in any case."
  )

  val EXPLAIN_FALLBACK_ENABLED: CometOption[Boolean] = boolean(
    "spark.comet.explain.fallback.enabled",
    default = false,
    "Whether the reason is logged for each exchange that stays with Spark's shuffle. explain shows " +
      "it in any case."
  )

  /** All options, in the order of the documentation. */
  val options: Seq[CometOption[_]] = Seq(
    SHUFFLE_ENABLED,
    SHUFFLE_MODE,
    SHUFFLE_FORMAT,
    COMPRESSION_CODEC,
    ZSTD_LEVEL,
    MAX_WRITERS_PER_EXECUTOR,
    JVM_BATCH_SIZE,
    WRITE_BUFFER_SIZE,
    MAX_BUFFER_BYTES,
    MEMORY_POOL,
    BATCH_SIZE,
    SIZE_IN_BYTES_MULTIPLIER,
    COLUMNAR_TO_ROW_ENABLED,
    EXPLAIN_FALLBACK_ENABLED
  )

  /** What is wrong with the first option whose value cannot be taken. */
  def invalidValue(conf: SparkConf): Option[String] =
    options.iterator.flatMap(_.problem(conf)).nextOption()

  /** The same for the options of a session. */
  def invalidValue(conf: SQLConf): Option[String] =
    options.iterator.flatMap(_.problem(conf)).nextOption()

  /** The page `docs/configuration.md`. */
  def markdown: String = {
    val rows = options.map(option => s"| `${option.key}` | ${option.defaultText} | ${option.doc} |")
    s"""# Configuration
       |
       |<!-- Generated from CometConf.scala by scripts/build --docs; a test compares the two. -->
       |
       |Options of Comet Shuffle, set like any option of Spark. A value that cannot be taken at the start of an
       |application leaves the application on Spark's own shuffle, with one warning that names key, value and
       |remedy. One that is set in a session leaves the exchanges of queries that are planned from then on with Spark's
       |shuffle; `explain` says why. A query that was planned before and needs the value when it runs fails with the message.
       |
       || key | default | meaning |
       ||---|---|---|
       |${rows.mkString("\n|")}
       |
       |Options of Spark that matter here:
       |
       || key | why |
       ||---|---|
       || `spark.plugins` | `org.apache.spark.comet.CometPlugin` turns the shuffle on |
       || `spark.memory.offHeap.enabled`, `spark.memory.offHeap.size` | row pages and batches live in off-heap memory; without it the application stays on Spark's shuffle |
       || `spark.shuffle.sort.bypassMergeThreshold` | rows of exchanges with more partitions are sorted by partition, see `spark.comet.shuffle.jvm.maxWritersPerExecutor` |
       || `spark.shuffle.sort.initialBufferSize` | rows that the sort-based writer has room to point at before that memory doubles |
       || `spark.shuffle.spill.numElementsForceSpillThreshold`, `spark.shuffle.spill.maxSizeInBytesForSpillThreshold` | writers of rows spill when they hold this many rows, or bytes |
       || `spark.shuffle.compress` | false switches compression off in our blocks, too |
       || `spark.shuffle.checksum.enabled`, `spark.shuffle.checksum.algorithm` | the checksum files beside the data files, as with Spark's shuffle |
       |""".stripMargin
  }
}
