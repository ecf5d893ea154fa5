package org.apache.spark.comet.vector

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.comet.NativeLibrary
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.types.UTF8String

class BatchExporterSuite extends AnyFunSuite {

  // One text for all rows, which are collected one by one.
  private def batch(rows: Int, columns: Int, text: String): ColumnarBatch = {
    val vectors = Array.fill[ColumnVector](columns) {
      val vector = new ConstantColumnVector(rows, StringType)
      vector.setUtf8String(UTF8String.fromString(text))
      vector
    }
    new ColumnarBatch(vectors, rows)
  }

  test("values are not collected beyond the budget of a batch") {
    NativeLibrary.load()
    val budget = 1L << 20
    val text = "x" * 100000
    for (columns <- Seq(1, 3)) {
      val schema = StructType.fromDDL((0 until columns).map(i => s"c$i string").mkString(", "))
      val exporter = new BatchExporter(schema)
      val large = batch(4096, columns, text)
      assert(exporter.describe(large, 0, 4096, null, budget) === 0)
      // Buffers double; one row may be on top in each.
      assert(exporter.capacity <= (2 * budget + text.length) * columns)
      assert(exporter.describe(large, 0, 10 / columns, null, budget) !== 0)
      assert(exporter.describe(large, 0, 11, null, budget) === 0)
      // One row is the least.
      assert(exporter.describe(large, 4095, 1, null, 1) !== 0)
      exporter.free()
      assert(exporter.capacity === 0)
    }
  }
}
