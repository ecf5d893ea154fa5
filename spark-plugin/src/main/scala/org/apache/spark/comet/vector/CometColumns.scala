package org.apache.spark.comet.vector

import org.apache.spark.comet.Native
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

/** The batch of a decoder: one object that is pointed at each decoded batch in turn.
  *
  * @param decoder the handle of `Native.newBlockDecoder`
  * @param guard who reads the batch
  */
class CometColumns(schema: StructType, decoder: Long, private[vector] val guard: ReadGuard) {

  private val vectors = schema.fields.map(field => CometVector.of(field.dataType))
  vectors.zipWithIndex.foreach { case (vector, i) => vector.joinBatch(this, i) }

  private val batch = new GuardedBatch(vectors.asInstanceOf[Array[ColumnVector]], guard)

  /** For the decoder to fill: null count, validity, offsets and values of each vector, in pre-order. */
  val buffers: Array[Long] = new Array[Long](
    schema.fields.map(f => CometVector.count(f.dataType)).sum * CometVector.EntriesPerVector
  )

  private[vector] def exportColumn(column: Int): Long = Native.exportColumn(decoder, column)

  /** Writes rows of the batch as `Native.writeRows` does. */
  def writeRows(first: Int, maxBytes: Long, rows: Array[Long]): Int =
    Native.writeRows(decoder, first, maxBytes, rows)

  /** The batch over what the decoder has filled in. */
  def pointAtBuffers(numRows: Int): ColumnarBatch = {
    var position = 0
    vectors.foreach(vector => position = vector.point(buffers, position))
    batch.setNumRows(numRows)
    batch
  }
}

object CometColumns {

  /** The decoder's columns that make up a batch, if they do. */
  def of(batch: ColumnarBatch): Option[CometColumns] =
    if (batch.numCols() == 0) {
      None
    } else {
      batch.column(0) match {
        case vector: CometVector => vector.columns.filter(_.batch eq batch)
        case _ => None
      }
    }
}
