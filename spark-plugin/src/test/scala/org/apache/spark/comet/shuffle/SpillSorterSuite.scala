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

  /** A sorter whose spills are counted and thrown away.
    *
    * @param ofFullest partitions, of which a spill takes the fullest; 0 if it takes all rows
    */
  private class Fixture(memoryBytes: Long, ofFullest: Int = 0) {
    val memory = taskMemory(memoryBytes)
    val allocator = new CometShuffleMemoryAllocator(memory, pageSize)
    var spills = 0
    val spilledRows = mutable.Map.empty[Int, Int].withDefaultValue(0)
    val sorter: SpillSorter = new SpillSorter(
      allocator,
      initialPointers = 16,
      _ =>
        if (sorter.numRows == 0) {
          false
        } else {
          spills += 1
          if (ofFullest > 0) {
            val (rows, forget) = sorter.fullest(ofFullest)
            encoded(rows).foreachEntry((partition, count) => spilledRows(partition) += count)
            forget()
          } else {
            sorter.freeAll()
          }
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
    def encode(numPartitions: Int): Map[Int, Int] = encoded(sorter.sorted(numPartitions))

    private def encoded(sorted: SortedRows): Map[Int, Int] = withComet() { session =>
      val encoder = new RowEncoder(serializer(session.sparkContext), memory)
      val rows = mutable.Map.empty[Int, Int].withDefaultValue(0)
      var previous = -1
      sorted.foreachBlocks(encoder, last = true) { (partition, blocks) =>
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
    val most = CometShuffleManager.MaxPartitions
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

  test("of the fullest partitions all rows are spilled, of the others none") {
    val fixture = new Fixture(64L << 20)
    // Partition p has p rows, some of them in pages of their own.
    val rows = for (partition <- 0 until 60; row <- 0 until partition) yield (partition, row)
    new scala.util.Random(5).shuffle(rows).foreach { case (partition, row) =>
      fixture.insert(partition, row, payloadBytes = if (row % 25 == 7) 100 << 10 else 1000)
    }
    val before = fixture.sorter.memoryUsed
    val (_, forget) = fixture.sorter.fullest(60)
    val freed = forget()
    // 49 + ... + 59 is the first sum that is a third of 1 + ... + 59.
    assert(fixture.encode(60) === (1 until 49).map(p => p -> p).toMap)
    assert(freed > before / 4)
    assert(fixture.sorter.memoryUsed === before - freed)
    assert(fixture.allocator.getUsed === before - freed)
    for (partition <- 0 until 60) fixture.insert(partition, 0)
    assert(fixture.encode(60) === (0 until 60).map(p => p -> (if (p < 49) p + 1 else 1)).toMap)
    fixture.close()
  }

  test("spills of the fullest partitions lose no row, and give it room without growing") {
    val fixture = new Fixture(1L << 20, ofFullest = 50)
    for (id <- 0 until 20000)
      fixture.insert(id * 7 % 50, id, payloadBytes = if (id % 1000 == 0) 80 << 10 else 20)
    assert(fixture.spills > 2)
    assert(fixture.sorter.memoryUsed <= (1L << 20))
    fixture.encode(50).foreachEntry((p, count) => fixture.spilledRows(p) += count)
    assert(fixture.spilledRows === (0 until 50).map(_ -> 400).toMap)
    fixture.close()
  }

  test("rows that come into the page of a large row that was spilled are found again") {
    val fixture = new Fixture(1L << 30)
    // The large row is of the fullest partition.
    fixture.insert(0, 0, payloadBytes = 200 << 20)
    for (id <- 1 to 50) fixture.insert(0, id)
    for (id <- 0 until 5) fixture.insert(1 + id, id, payloadBytes = 20 << 20)
    val (_, forget) = fixture.sorter.fullest(10)
    forget()
    assert(fixture.sorter.memoryUsed >= (200L << 20))
    for (id <- 5 until 9) fixture.insert(1 + id, id, payloadBytes = 20 << 20)
    assert(fixture.encode(10) === (1 until 10).map(_ -> 1).toMap)
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
