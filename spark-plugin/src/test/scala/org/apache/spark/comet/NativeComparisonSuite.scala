package org.apache.spark.comet

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Repartition}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.DataType

/** The same rows as batches of some kind, through Spark's shuffle and through the native writer. */
abstract class NativeComparison(kind: ColumnKind) extends ShuffleComparison {
  import CometTestBase._

  override def source(df: DataFrame): LogicalPlan = Columns(df.queryExecution.analyzed, kind)
  override def supports(dataType: DataType): Boolean = kind.supports(dataType)
  override def writer(shape: String): String = "native"
  override def confs: Seq[(String, String)] = kind.confs
  override def prepare(session: SparkSession): Unit = ColumnsStrategy.install(session)

  // A batch of few rows, since a batch is the least that is staged.
  private val smallBatches = "spark.sql.inMemoryColumnarStorage.batchSize" -> "50"

  for (codec <- codecs; aqe <- Seq(false, true))
    test(s"in memory, $codec, AQE $aqe") {
      withComet(confs ++ Seq(Codec -> codec, sampling): _*) { session =>
        assert(compare(session, fat = false, aqe, shapes) === 0)
      }
    }

  for (pool <- Seq("fair_unified", "greedy_unified"))
    test(s"forced spill, $pool") {
      val options = Seq(sampling, smallBatches, "spark.comet.exec.memoryPool" -> pool)
      withComet(smallMemory ++ confs ++ options: _*) { session =>
        assert(compare(session, fat = true, aqe = false, shapes.filter(_ != "window")) > 0)
      }
    }

  test("spills by the limit of buffered bytes") {
    val options =
      Seq(sampling, smallBatches, "spark.comet.shuffle.native.maxBufferBytes" -> "256k")
    withComet(confs ++ options: _*) { session =>
      assert(compare(session, fat = true, aqe = true, shapes.filter(_ != "single")) > 0)
    }
  }
}

class OffHeapVectorsSuite extends NativeComparison(ColumnKind.OffHeapVectors)

/** More partitions than Spark's default. */
class OffHeapVectors201Suite extends NativeComparison(ColumnKind.OffHeapVectors) {
  override protected def partitions: Int = 201
  override protected def seeds: Seq[Long] = Seq(1L)
  override protected def codecs: Seq[String] = Seq("zstd")
}

/** More partitions than tasks have rows. */
class OffHeapVectors2000Suite extends NativeComparison(ColumnKind.OffHeapVectors) {
  override protected def partitions: Int = 2000
  override protected def seeds: Seq[Long] = Seq(3L)
  override protected def codecs: Seq[String] = Seq("lz4")
  override protected def shapes: Seq[String] = Seq("round robin", "hash", "range")
}

class OnHeapVectorsSuite extends NativeComparison(ColumnKind.OnHeapVectors)

class ArrowVectorsSuite extends NativeComparison(ColumnKind.ArrowVectors)

/** Our own batches: an exchange over another one. */
class OwnVectorsSuite extends ShuffleComparison {
  override def source(df: DataFrame): LogicalPlan =
    Repartition(3, shuffle = true, df.queryExecution.analyzed)
  override def supports(dataType: DataType): Boolean = true
  // Spark would leave out the exchange below.
  override def confs: Seq[(String, String)] =
    Seq("spark.sql.optimizer.excludedRules" ->
      "org.apache.spark.sql.catalyst.optimizer.CollapseRepartition")
  // The rows of an exchange have no fixed order.
  override def writer(shape: String): String = if (shape == "round robin") "jvm" else "native"

  for (aqe <- Seq(false, true))
    test(s"in memory, AQE $aqe") {
      withComet(confs :+ sampling: _*) { session =>
        assert(compare(session, fat = false, aqe, shapes.filter(_ != "window")) === 0)
      }
    }
}
