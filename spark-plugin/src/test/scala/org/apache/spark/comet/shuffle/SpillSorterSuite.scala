package org.apache.spark.comet.shuffle

import java.util.concurrent.Executors

import scala.collection.mutable
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration._

import org.apache.spark.comet.CometTestBase
import org.apache.spark.comet.memory.CometShuffleMemoryAllocator
import org.apache.spark.memory.{MemoryConsumer, MemoryMode, SparkOutOfMemoryError}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}

class SpillSorterSuite extends CometTestBase {
  import RowWriterTests._

  private val pageSize = 64L << 10

  /** A sorter whose spills are counted and thrown away. */
  private class Fixture(memoryBytes: Long) {
    val memory = taskMemory(memoryBytes)
    val allocator = new CometShuffleMemoryAllocator(memory, pageSize)
    var spills = 0
    val sorter: SpillSorter = new SpillSorter(
      allocator,
      initialPointers = 16,
      _ =>
        if (sorter.numRows == 0) {
          false
        } else {
          spills += 1
          sorter.freeAll()
          true
        }
    )
    private val project = UnsafeProjection.create(schema)

    def row(id: Long, payloadBytes: Int): UnsafeRow =
      project(InternalRow(id, new Array[Byte](payloadBytes)))

    def insert(partition: Int, id: Long, payloadBytes: Int = 10): Unit = {
      val made = row(id, payloadBytes)
      sorter.insertRow(partition, made.getBaseObject, made.getBaseOffset, made.getSizeInBytes)
    }

    /** Rows of each partition, by blocks. */
    def encode(numPartitions: Int): Map[Int, Int] = withComet() { session =>
      val encoder = new RowEncoder(serializer(session.sparkContext), memory)
      val rows = mutable.Map.empty[Int, Int].withDefaultValue(0)
      var previous = -1
      sorter.sorted(numPartitions).foreachBlocks(encoder, last = true) { (partition, blocks) =>
        assert(partition >= previous)
        previous = partition
        while (blocks.hasRemaining) {
          val little = blocks.order(java.nio.ByteOrder.LITTLE_ENDIAN)
          rows(partition) += little.getInt(blocks.position() + 16)
          blocks.position(
            blocks.position() + 40 + little.getLong(blocks.position() + 32).toInt
          )
        }
      }
      encoder.close()
      rows.toMap
    }

    def close(): Unit = {
      sorter.freeAll()
      assert(allocator.getUsed === 0)
      assert(memory.cleanUpAllAllocatedMemory() === 0)
    }
  }

  test("a fresh sorter holds nothing") {
    val fixture = new Fixture(8L << 20)
    assert(fixture.sorter.memoryUsed === 0)
    assert(fixture.sorter.numRows === 0)
    assert(fixture.encode(5).isEmpty)
    assert(fixture.sorter.freeAll() === 0)
    fixture.close()
  }

  test("rows over all partitions, and the spill is not called without pressure") {
    val fixture = new Fixture(64L << 20)
    for (id <- 0 until 30000) fixture.insert(partition = (id * 7) % 2000, id)
    assert(fixture.sorter.numRows === 30000)
    assert(fixture.sorter.memoryUsed === fixture.allocator.getUsed)
    assert(fixture.encode(2000) === (0 until 2000).map(_ -> 15).toMap)
    assert(fixture.spills === 0)
    fixture.close()
  }

  test("the first and the last of the most partitions") {
    val fixture = new Fixture(8L << 20)
    val most = CometShuffleManager.MaxSortedPartitions
    Seq(most - 1, 0, most / 2, 0).zipWithIndex.foreach { case (partition, id) =>
      fixture.insert(partition, id)
    }
    assert(fixture.encode(most) === Map(0 -> 2, most / 2 -> 1, most - 1 -> 1))
    fixture.close()
  }

  test("denied memory makes it spill; after that it starts small and is used on") {
    val fixture = new Fixture(1L << 20)
    for (id <- 0 until 20000) fixture.insert(id % 10, id, payloadBytes = 100)
    assert(fixture.spills > 1)
    assert(fixture.sorter.memoryUsed <= (1L << 20))
    val left = fixture.sorter.numRows
    assert(left > 0)
    assert(fixture.encode(10).values.sum === left)
    fixture.sorter.freeAll()
    fixture.insert(3, 1)
    // A page, and room for 16 rows and to sort them.
    assert(fixture.sorter.memoryUsed === pageSize + 16 * 8 * 2)
    assert(fixture.encode(10) === Map(3 -> 1))
    fixture.close()
  }

  test("pointers that are denied room to grow make it spill") {
    val fixture = new Fixture(1L << 20)
    // Rows without bytes need pages only for their lengths.
    val none = new UnsafeRow(0)
    none.pointTo(new Array[Byte](8), 0)
    for (_ <- 0 until 100000)
      fixture.sorter.insertRow(0, none.getBaseObject, none.getBaseOffset, 0)
    assert(fixture.spills > 0)
    fixture.close()
  }

  test("with nothing to spill a denial is Spark's out-of-memory error") {
    val fixture = new Fixture(1L << 20)
    val other = new MemoryConsumer(fixture.memory, pageSize, MemoryMode.OFF_HEAP) {
      override def spill(size: Long, trigger: MemoryConsumer): Long = 0
    }
    val taken = other.acquireMemory(1L << 20)
    intercept[SparkOutOfMemoryError](fixture.insert(0, 1))
    assert(fixture.spills === 0)
    other.freeMemory(taken)
    fixture.insert(0, 1)
    fixture.close()
  }

  test("a row larger than a page gets a page of its own size") {
    val fixture = new Fixture(64L << 20)
    fixture.insert(1, 1, payloadBytes = 10)
    fixture.insert(0, 2, payloadBytes = 5 << 20)
    fixture.insert(1, 3, payloadBytes = 10)
    val large = fixture.row(2, 5 << 20).getSizeInBytes + SpillWriter.LengthBytes
    assert(fixture.sorter.memoryUsed === 2 * pageSize + large + 16 * 8 * 2)
    assert(fixture.encode(2) === Map(0 -> 1, 1 -> 2))
    fixture.close()
  }

  test("memory in use can be read from another thread") {
    val fixture = new Fixture(64L << 20)
    implicit val context: ExecutionContext =
      ExecutionContext.fromExecutorService(Executors.newSingleThreadExecutor())
    @volatile var done = false
    val seen = Future {
      var largest = 0L
      while (!done) largest = math.max(largest, fixture.sorter.memoryUsed)
      math.max(largest, fixture.sorter.memoryUsed)
    }
    for (id <- 0 until 50000) fixture.insert(id % 3, id)
    done = true
    assert(Await.result(seen, 20.seconds) === fixture.sorter.memoryUsed)
    assert(fixture.sorter.memoryUsed === fixture.allocator.getUsed)
    fixture.close()
    context.asInstanceOf[scala.concurrent.ExecutionContextExecutorService].shutdown()
  }
}
