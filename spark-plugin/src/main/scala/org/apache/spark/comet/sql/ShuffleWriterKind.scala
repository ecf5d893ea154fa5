package org.apache.spark.comet.sql

/** Which writer an exchange's map output takes. */
sealed abstract class ShuffleWriterKind(override val toString: String) extends Serializable

/** Batches, partitioned and written in native code. */
case object NativeWriter extends ShuffleWriterKind("native")

/** Rows, collected in pages by the JVM. */
case object JvmWriter extends ShuffleWriterKind("jvm")
