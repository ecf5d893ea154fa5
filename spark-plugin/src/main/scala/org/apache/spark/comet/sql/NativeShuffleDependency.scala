package org.apache.spark.comet.sql

import scala.jdk.CollectionConverters._

import org.apache.spark.{PartitionIdPassthrough, RangePartitioner, ShuffleDependency}
import org.apache.spark.comet.shuffle._
import org.apache.spark.comet.vector.RowPartitionIds
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Ascending,
  Attribute,
  AttributeSet,
  BoundReference,
  Descending,
  Expression,
  NullsFirst,
  SortOrder,
  UnsafeProjection,
  UnsafeRow
}
import org.apache.spark.sql.catalyst.expressions.codegen.LazilyGeneratedOrdering
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.CollationFactory
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.MutablePair

/** Shuffle dependencies whose records are batches for the native writer. */
object NativeShuffleDependency {

  /** How the native writer places the rows of `batches`: by itself where the keys are columns whose placement is the same
    * in every release of Spark, else by Spark's expressions. For ranges this runs Spark's sampling job.
    */
  def partitioning(
      partitioning: Partitioning,
      output: Seq[Attribute],
      batches: RDD[ColumnarBatch]
  ): NativePartitioning = partitioning match {
    case SinglePartition => NativeSinglePartitioning
    case RoundRobinPartitioning(1) => NativeSinglePartitioning
    case RoundRobinPartitioning(partitions) => NativeRoundRobinPartitioning(partitions)
    case HashPartitioning(_, 1) => NativeSinglePartitioning
    case hash: HashPartitioning => hashPartitioning(hash, output)
    case range: RangePartitioning => rangePartitioning(range, output, batches)
    case other => throw new IllegalStateException(s"no native partitioning for $other")
  }

  /** The dependency of an exchange of `batches`. Placing rows by their number depends on their order. */
  def create(
      batches: RDD[ColumnarBatch],
      serializer: CometShuffleSerializer,
      writeMetrics: Map[String, SQLMetric]
  ): ShuffleDependency[Int, InternalRow, InternalRow] = {
    val partitioning = serializer.native.get.partitioning
    val records = batches.mapPartitionsWithIndexInternal(
      (_, iterator) => iterator.map(batch => (0, batch)),
      isOrderSensitive = partitioning.isInstanceOf[NativeRoundRobinPartitioning]
    )
    new ShuffleDependency[Int, InternalRow, InternalRow](
      // As everywhere in Spark, columnar data passes as rows as far as types go.
      records.asInstanceOf[RDD[(Int, InternalRow)]],
      new PartitionIdPassthrough(partitioning.numPartitions),
      serializer,
      shuffleWriterProcessor = ShuffleExchangeExec.createShuffleWriteProcessor(writeMetrics)
    )
  }

  private def hashPartitioning(
      hash: HashPartitioning,
      output: Seq[Attribute]
  ): NativePartitioning = {
    val columns = hash.expressions.flatMap(columnOf(_, output))
    if (columns.length == hash.expressions.length) {
      NativeHashPartitioning(columns.toArray, hash.numPartitions)
    } else {
      RowPartitioning(hash.numPartitions, new HashIds(hash.partitionIdExpression, output))
    }
  }

  /** The column that a key is, if native code places it as Spark does. */
  private def columnOf(key: Expression, output: Seq[Attribute]): Option[Int] = key match {
    case attribute: Attribute if isPlain(attribute.dataType) =>
      Some(output.indexWhere(_.exprId == attribute.exprId)).filter(_ >= 0)
    case _ => None
  }

  // How intervals are hashed depends on Spark's release, collated strings on that of ICU; maps are sorted first.
  private def isPlain(dataType: DataType): Boolean = !dataType.existsRecursively {
    case string: StringType => string.collationId != CollationFactory.UTF8_BINARY_COLLATION_ID
    case CalendarIntervalType | VariantType => true
    case _: MapType | _: UserDefinedType[_] => true
    case _ => false
  }

  private def rangePartitioning(
      range: RangePartitioning,
      output: Seq[Attribute],
      batches: RDD[ColumnarBatch]
  ): NativePartitioning = {
    val keys = range.ordering.map(_.child)
    val partitioner = rangePartitioner(range, output, batches)
    val columns = range.ordering.flatMap(sortKey(_, output))
    val bounds = if (columns.length == keys.length) RangeBounds.of(partitioner) else None
    bounds match {
      case _ if partitioner.numPartitions == 1 => NativeSinglePartitioning
      case Some(rows) =>
        val keySchema = StructType(keys.zipWithIndex.map { case (key, i) =>
          StructField(s"key$i", key.dataType)
        })
        NativeRangePartitioning(columns.toArray, keySchema, rows)
      case None =>
        RowPartitioning(partitioner.numPartitions, new RangeIds(keys, output, partitioner))
    }
  }

  private def sortKey(order: SortOrder, output: Seq[Attribute]): Option[NativeSortKey] = {
    val nullsFirst = order.nullOrdering == NullsFirst
    // Inside of a nested key Spark puts nulls first and reverses that with the direction.
    val nested = order.child.dataType match {
      case _: StructType | _: ArrayType => true
      case _ => false
    }
    val isDefault = nullsFirst == (order.direction == Ascending)
    columnOf(order.child, output).filter(_ => !nested || isDefault).map { column =>
      NativeSortKey(column, order.direction == Descending, nullsFirst)
    }
  }

  /** Spark's own partitioner over a sample of the keys, as `ShuffleExchangeExec` makes it from rows. */
  private def rangePartitioner(
      range: RangePartitioning,
      output: Seq[Attribute],
      batches: RDD[ColumnarBatch]
  ): RangePartitioner[InternalRow, Null] = {
    val ordering = range.ordering
    val keys = batches.mapPartitionsInternal { iterator =>
      val projection = new KeyProjection(ordering.map(_.child), output)
      val pair = new MutablePair[InternalRow, Null]()
      iterator.flatMap(_.rowIterator().asScala).map { row =>
        pair.update(projection(row).copy(), null)
      }
    }
    implicit val byKey: Ordering[InternalRow] =
      new LazilyGeneratedOrdering(ordering.zipWithIndex.map { case (order, i) =>
        order.copy(child = BoundReference(i, order.dataType, order.nullable))
      })
    new RangePartitioner(
      range.numPartitions,
      keys,
      ascending = true,
      samplePointsPerPartitionHint = SQLConf.get.rangeExchangeSampleSizePerPartition
    )
  }
}

/** The upper bounds in Spark's partitioner, which has no getter for them. */
private object RangeBounds {

  /** None if they cannot be had: keys are placed by the partitioner itself then. */
  def of(partitioner: RangePartitioner[InternalRow, Null]): Option[Array[UnsafeRow]] =
    field.map(_.get(partitioner).asInstanceOf[Array[_]].map(_.asInstanceOf[UnsafeRow]))

  private lazy val field =
    classOf[RangePartitioner[_, _]].getDeclaredFields.find(_.getName.endsWith("rangeBounds")).map {
      found =>
        found.setAccessible(true)
        found
    }
}

/** Keys of rows of a batch. What they need of a row is copied first: not all of Spark's expressions can do with the
  * elements of vectors.
  */
private class KeyProjection(keys: Seq[Expression], output: Seq[Attribute]) {
  private val needed = output.filter(AttributeSet(keys.flatMap(_.references)).contains)
  private val copied = UnsafeProjection.create(needed, output)
  private val projection = UnsafeProjection.create(keys, needed)

  def apply(row: InternalRow): UnsafeRow = projection(copied(row))
}

/** Ids by the expression of a hash partitioning. */
private class HashIds(id: Expression, output: Seq[Attribute])
    extends (() => RowPartitionIds) with Serializable {
  override def apply(): RowPartitionIds = {
    val projection = new KeyProjection(id :: Nil, output)
    row => projection(row).getInt(0)
  }
}

/** Ids by Spark's range partitioner. */
private class RangeIds(
    keys: Seq[Expression],
    output: Seq[Attribute],
    partitioner: RangePartitioner[InternalRow, Null]
) extends (() => RowPartitionIds) with Serializable {
  override def apply(): RowPartitionIds = {
    val projection = new KeyProjection(keys, output)
    row => partitioner.getPartition(projection(row))
  }
}
