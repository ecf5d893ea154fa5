package org.apache.spark.comet.vector

import org.apache.spark.comet.memory.GrowingBuffer
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types.StructType

private final class NullBuilder extends ColumnBuilder {
  override def describe(numbers: GrowingBuffer): Unit = numbers.appendLong(ColumnKind.AllNull)
  override protected def clearValues(): Unit = {}
  override protected def appendValue(values: SpecializedGetters, i: Int): Unit = {}
  override protected def appendPlaceholder(): Unit = {}
}

private sealed abstract class NestedBuilder(children: Seq[ColumnBuilder]) extends ColumnBuilder {
  override def capacity: Long = super.capacity + children.map(_.capacity).sum
  override def free(): Unit = {
    super.free()
    children.foreach(_.free())
  }
  override protected def clearValues(): Unit = children.foreach(_.clear())
}

private sealed abstract class FieldsBuilder(fields: Array[ColumnBuilder])
    extends NestedBuilder(fields.toSeq) {

  override def describe(numbers: GrowingBuffer): Unit = {
    numbers.appendLong(ColumnKind.Struct)
    numbers.appendLong(nullsAddress)
    fields.foreach(_.describe(numbers))
  }

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

private sealed abstract class ElementsBuilder(elements: Seq[ColumnBuilder])
    extends NestedBuilder(elements) {

  protected val spans = new Spans

  override def describe(numbers: GrowingBuffer): Unit = {
    numbers.appendLong(ColumnKind.Elements)
    numbers.appendLong(nullsAddress)
    spans.describe(numbers)
    numbers.appendLong(elements.head.count)
    elements.foreach(_.describe(numbers))
  }

  override def capacity: Long = super.capacity + spans.capacity

  override def free(): Unit = {
    super.free()
    spans.free()
  }

  override protected def clearValues(): Unit = {
    super.clearValues()
    spans.clear()
  }

  override protected def appendPlaceholder(): Unit = spans.append(elements.head.count, 0)
}

private final class ListBuilder(element: ColumnBuilder) extends ElementsBuilder(Seq(element)) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val array = from.getArray(i)
    val length = array.numElements()
    spans.append(element.count, length)
    var j = 0
    while (j < length) {
      element.append(array, j)
      j += 1
    }
  }
}

private final class MapBuilder(key: ColumnBuilder, value: ColumnBuilder)
    extends ElementsBuilder(Seq(key, value)) {
  override protected def appendValue(from: SpecializedGetters, i: Int): Unit = {
    val map = from.getMap(i)
    val (keys, values) = (map.keyArray(), map.valueArray())
    val length = map.numElements()
    spans.append(key.count, length)
    var j = 0
    while (j < length) {
      key.append(keys, j)
      value.append(values, j)
      j += 1
    }
  }
}
