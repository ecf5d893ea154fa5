package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types.StructType

private final class NullBuilder extends ColumnBuilder {
  override protected[vector] def describe(
      descriptor: BatchDescriptor,
      append: GrowingBuffer => Unit
  ): Unit = {}
  override protected def appendValue(values: SpecializedGetters, i: Int): Unit = {}
  override protected def appendPlaceholder(): Unit = {}
}

private sealed abstract class FieldsBuilder(fields: Array[ColumnBuilder]) extends ColumnBuilder {

  override protected val children: Seq[ColumnBuilder] = fields.toSeq

  override protected def appendPlaceholder(): Unit = fields.foreach(_.appendNull())
}

private final class StructBuilder(fields: Array[ColumnBuilder]) extends FieldsBuilder(fields) {

  def this(struct: StructType) = this(struct.fields.map(f => ColumnBuilder.of(f.dataType)))

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val struct = from.getStruct(i, fields.length)
    var field = 0
    while (field < fields.length) {
      fields(field).append(struct, field)
      field += 1
    }
  }
}

private final class IntervalBuilder(months: IntBuilder, days: IntBuilder, micros: LongBuilder)
    extends FieldsBuilder(Array(months, days, micros)) {

  def this() = this(new IntBuilder, new IntBuilder, new LongBuilder)

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val interval = from.getInterval(i)
    months.appendInt(interval.months)
    days.appendInt(interval.days)
    micros.appendLong(interval.microseconds)
  }
}

private final class VariantBuilder(value: BinaryBuilder, metadata: BinaryBuilder)
    extends FieldsBuilder(Array(value, metadata)) {

  def this() = this(new BinaryBuilder, new BinaryBuilder)

  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val variant = from.getVariant(i)
    value.appendBytes(variant.getValue)
    metadata.appendBytes(variant.getMetadata)
  }
}

private sealed abstract class ElementsBuilder(elements: ColumnBuilder*) extends ColumnBuilder {

  private val offsets = new Offsets

  override protected def buffers: Seq[GrowingBuffer] = Seq(offsets.buffer)

  override protected val children: Seq[ColumnBuilder] = elements

  override protected def childCount: Option[Int] = Some(elements.head.count)

  override protected def finish(): Unit = offsets.finish()

  override protected def appendPlaceholder(): Unit = appendEnd()

  /** Ends a row with the elements that there are by now. */
  protected def appendEnd(): Unit = offsets.append(elements.head.count)
}

private final class ListBuilder(element: ColumnBuilder) extends ElementsBuilder(element) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val array = from.getArray(i)
    val length = array.numElements()
    var j = 0
    while (j < length) {
      element.append(array, j)
      j += 1
    }
    appendEnd()
  }
}

private final class MapBuilder(key: ColumnBuilder, value: ColumnBuilder)
    extends ElementsBuilder(key, value) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val map = from.getMap(i)
    val (keys, values) = (map.keyArray(), map.valueArray())
    val length = map.numElements()
    var j = 0
    while (j < length) {
      key.append(keys, j)
      value.append(values, j)
      j += 1
    }
    appendEnd()
  }
}
