package org.apache.spark.comet.shuffle

import java.nio.ByteBuffer

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.{HashPartitioner, ShuffleDependency}
import org.apache.spark.comet.CometTestBase
import org.apache.spark.comet.memory.CometShuffleMemoryAllocator
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.InternalRow

class CometDiskBlockWriterSuite extends CometTestBase {
  import CometTestBase._
  import RowWriterTests._

  private val project = UnsafeProjection.create(schema)

  private def row(id: Long, payloadBytes: Int): UnsafeRow =
    project(InternalRow(id, new Array[Byte](payloadBytes)))

  test("pages start at 64 KiB, double up to the maximum, and start small again after a batch") {
    withComet() { session =>
      val memory = taskMemory(64L << 20)
      val allocator =
        new CometShuffleMemoryAllocator(memory, CometDiskBlockWriter.InitialPageSize)
      val encoder = new RowEncoder(serializer(session.sparkContext), memory)
      val batches = ArrayBuffer.empty[Int]
      val task = new DiskBlockWriterTask {
        override def makeRoom(bytes: Long): Boolean = false
        override def addBlocks(partition: Int, rows: Int, blocks: ByteBuffer): Unit =
          batches += blocks.remaining()
      }
      val writer = new CometDiskBlockWriter(
        partition = 0,
        allocator,
        encoder,
        task,
        CometDiskBlockWriter.InitialPageSize,
        maxPageSize = 1L << 20,
        rowsPerBlock = 4100
      )
      val sizes = ArrayBuffer.empty[Long]
      (1 to 4101).foreach { id =>
        val one = row(id, 960)
        writer.insertRow(one.getBaseObject, one.getBaseOffset, one.getSizeInBytes)
        assert(writer.memoryUsed === allocator.getUsed)
        if (!sizes.lastOption.contains(writer.memoryUsed >> 10)) {
          sizes += writer.memoryUsed >> 10
        }
      }
      assert(sizes === Seq(64, 192, 448, 960, 1984, 3008, 4032, 64))
      assert(batches.length === 1)
      assert(writer.numRows === 1)
      writer.freePages()
      encoder.close()
      assert(memory.cleanUpAllAllocatedMemory() === 0)
    }
  }

  test("a row larger than the next page gets a page of its own size") {
    withComet() { session =>
      val memory = taskMemory(64L << 20)
      val allocator =
        new CometShuffleMemoryAllocator(memory, CometDiskBlockWriter.InitialPageSize)
      val encoder = new RowEncoder(serializer(session.sparkContext), memory)
      val task = new DiskBlockWriterTask {
        override def makeRoom(bytes: Long): Boolean = false
        override def addBlocks(partition: Int, rows: Int, blocks: ByteBuffer): Unit =
          fail("no batch is full")
      }
      val writer = new CometDiskBlockWriter(
        0,
        allocator,
        encoder,
        task,
        CometDiskBlockWriter.InitialPageSize,
        1L << 20,
        8192
      )
      val large = row(1, 5 << 20)
      writer.insertRow(large.getBaseObject, large.getBaseOffset, large.getSizeInBytes)
      assert(writer.memoryUsed === large.getSizeInBytes + SpillWriter.LengthBytes)
      writer.freePages()
      encoder.close()
      assert(memory.cleanUpAllAllocatedMemory() === 0)
    }
  }

  test("32 partitions x 100 rows in a pool with room for eight 1 MiB pages do not spill") {
    withComet("spark.master" -> "local[1]", OffHeapSize -> (8L << 20).toString) { session =>
      val sc = session.sparkContext
      val ours = serializer(sc)
      val rows = sc.parallelize(Seq(0), 1).flatMap { _ =>
        val toUnsafe = UnsafeProjection.create(ours.schema)
        Iterator.tabulate(3200) { i =>
          val value: InternalRow = toUnsafe(InternalRow(i.toLong, new Array[Byte](100)))
          (i % 32, value)
        }
      }
      val shuffle = new ShuffleDependency[Int, InternalRow, InternalRow](
        rows,
        new HashPartitioner(32),
        ours
      )
      var spilled = -1L
      sc.addSparkListener(new SparkListener {
        override def onTaskEnd(end: SparkListenerTaskEnd): Unit =
          spilled = end.taskMetrics.diskBytesSpilled
      })
      val statistics = sc.submitMapStage(shuffle).get()
      eventually(assert(spilled === 0))
      assert(ours.metrics.spillCount.value === 0)
      assert(ours.metrics.blocksWritten.value === 32)
      assert(statistics.bytesByPartitionId.forall(_ > 0))
    }
  }
}
