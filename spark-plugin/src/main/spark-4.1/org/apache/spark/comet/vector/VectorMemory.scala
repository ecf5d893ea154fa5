package org.apache.spark.comet.vector

import java.lang.reflect.Field

import scala.util.Try

import org.apache.spark.sql.execution.vectorized.{
  Dictionary,
  OffHeapColumnVector,
  OnHeapColumnVector,
  WritableColumnVector
}

/** Spark 4.1: where writable vectors keep their values, most of which have no getters. Spark holds the addresses of
  * off-heap vectors open to other components ("binary compatible" in `OffHeapColumnVector`). Vectors without such fields
  * are asked value by value.
  */
private[vector] sealed abstract class VectorMemory {

  def available: Boolean

  /** Appends the place of the nulls, 0 if there is none. */
  final def appendNulls(
      column: WritableColumnVector,
      from: Int,
      descriptor: BatchDescriptor
  ): Unit =
    if (column.hasNull) nulls(column, from, descriptor) else descriptor.append(0)

  protected def nulls(column: WritableColumnVector, from: Int, descriptor: BatchDescriptor): Unit

  /** Appends the places of offsets and lengths. */
  def appendSpans(column: WritableColumnVector, from: Int, descriptor: BatchDescriptor): Unit

  /** Appends the place of a value of `width` bytes. */
  def appendValues(
      column: WritableColumnVector,
      from: Int,
      width: Int,
      descriptor: BatchDescriptor
  ): Unit
}

private[vector] object VectorMemory {

  private val dictionaryField = field(classOf[WritableColumnVector], "dictionary")

  /** How to find the values of a vector, if there is a way. */
  def of(column: WritableColumnVector): Option[VectorMemory] = {
    val memory = column match {
      case _: OffHeapColumnVector => Some(OffHeapMemory)
      case _: OnHeapColumnVector => Some(OnHeapMemory)
      case _ => None
    }
    memory.filter(_.available && dictionaryField.isDefined)
  }

  def dictionary(column: WritableColumnVector): Dictionary =
    dictionaryField.get.get(column).asInstanceOf[Dictionary]

  def field(of: Class[_], name: String): Option[Field] = Try {
    val found = of.getDeclaredField(name)
    found.setAccessible(true)
    found
  }.toOption
}

private object OffHeapMemory extends VectorMemory {

  private val Seq(nullsField, offsetsField, lengthsField) =
    Seq("nulls", "offsetData", "lengthData")
      .map(VectorMemory.field(classOf[OffHeapColumnVector], _))

  override val available: Boolean =
    Seq(nullsField, offsetsField, lengthsField).forall(_.isDefined)

  override protected def nulls(
      column: WritableColumnVector,
      from: Int,
      descriptor: BatchDescriptor
  ): Unit = descriptor.append(nullsField.get.getLong(column) + from)

  override def appendSpans(
      column: WritableColumnVector,
      from: Int,
      descriptor: BatchDescriptor
  ): Unit = {
    descriptor.append(offsetsField.get.getLong(column) + from * 4L)
    descriptor.append(lengthsField.get.getLong(column) + from * 4L)
  }

  override def appendValues(
      column: WritableColumnVector,
      from: Int,
      width: Int,
      descriptor: BatchDescriptor
  ): Unit = {
    val values = column.asInstanceOf[OffHeapColumnVector].valuesNativeAddress()
    descriptor.append(values + from.toLong * width)
  }
}

private object OnHeapMemory extends VectorMemory {

  private val Seq(nullsField, offsetsField, lengthsField) =
    Seq("nulls", "arrayOffsets", "arrayLengths")
      .map(VectorMemory.field(classOf[OnHeapColumnVector], _))

  // A vector has one of these.
  private val valuesFields =
    Seq("byteData", "shortData", "intData", "longData", "floatData", "doubleData")
      .map(VectorMemory.field(classOf[OnHeapColumnVector], _))

  override val available: Boolean =
    (valuesFields ++ Seq(nullsField, offsetsField, lengthsField)).forall(_.isDefined)

  override protected def nulls(
      column: WritableColumnVector,
      from: Int,
      descriptor: BatchDescriptor
  ): Unit = descriptor.appendArray(nullsField.get.get(column), from)

  override def appendSpans(
      column: WritableColumnVector,
      from: Int,
      descriptor: BatchDescriptor
  ): Unit = {
    descriptor.appendArray(offsetsField.get.get(column), from * 4L)
    descriptor.appendArray(lengthsField.get.get(column), from * 4L)
  }

  override def appendValues(
      column: WritableColumnVector,
      from: Int,
      width: Int,
      descriptor: BatchDescriptor
  ): Unit = valuesFields.iterator.map(_.get.get(column)).find(_ != null) match {
    case Some(values) => descriptor.appendArray(values, from.toLong * width)
    case None => descriptor.append(0)
  }
}
