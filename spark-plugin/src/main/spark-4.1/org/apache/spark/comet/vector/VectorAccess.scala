package org.apache.spark.comet.vector

import java.lang.reflect.Field

import scala.util.Try

import org.apache.spark.sql.execution.vectorized.{
  Dictionary,
  OffHeapColumnVector,
  WritableColumnVector
}

/** Spark 4.1: where off-heap vectors keep what they have no getters for. Spark holds these addresses open to other
  * components ("binary compatible" in `OffHeapColumnVector`), but only that of the values has a getter. Without them the
  * vectors are asked value by value.
  */
private[vector] object VectorAccess {

  private val nullsField = field(classOf[OffHeapColumnVector], "nulls")
  private val offsetsField = field(classOf[OffHeapColumnVector], "offsetData")
  private val lengthsField = field(classOf[OffHeapColumnVector], "lengthData")
  private val dictionaryField = field(classOf[WritableColumnVector], "dictionary")

  val available: Boolean =
    Seq(nullsField, offsetsField, lengthsField, dictionaryField).forall(_.isDefined)

  def nulls(column: OffHeapColumnVector): Long = nullsField.get.getLong(column)

  def offsets(column: OffHeapColumnVector): Long = offsetsField.get.getLong(column)

  def lengths(column: OffHeapColumnVector): Long = lengthsField.get.getLong(column)

  def dictionary(column: OffHeapColumnVector): Dictionary =
    dictionaryField.get.get(column).asInstanceOf[Dictionary]

  private def field(of: Class[_], name: String): Option[Field] = Try {
    val found = of.getDeclaredField(name)
    found.setAccessible(true)
    found
  }.toOption
}
