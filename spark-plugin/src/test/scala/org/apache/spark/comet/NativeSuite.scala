package org.apache.spark.comet

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.types.{IntegerType, StructType}
import org.apache.spark.unsafe.Platform

/** Failures of native code are Java exceptions, and the JVM lives on. */
class NativeSuite extends AnyFunSuite {

  private val descriptor = SchemaDescriptor.encode(new StructType().add("a", IntegerType))

  test("jar and library are of the same build") {
    NativeLibrary.load()
    assert(Native.version() === NativeLibrary.jarVersion())
  }

  test("the library's file is gone once it is loaded") {
    NativeLibrary.load()
    val temporary = Files.list(java.nio.file.Paths.get(System.getProperty("java.io.tmpdir")))
    try assert(temporary.noneMatch(_.getFileName.toString.contains("libcomet_shuffle")))
    finally temporary.close()
  }

  test("a library of another build is refused with both versions") {
    val failure = intercept[CometNativeException] {
      NativeLibrary.checkVersion("0.1.0+aaaa", "0.1.0+bbbb")
    }
    assert(failure.getMessage.contains("0.1.0+aaaa") && failure.getMessage.contains("0.1.0+bbbb"))
    assert(failure.getMessage.contains("scripts/build"))
  }

  test("a platform without a library is refused with its name and those that have one") {
    val failure = intercept[CometNativeException](NativeLibrary.loadFrom("plan9-mips"))
    assert(failure.getMessage.contains("plan9-mips") && failure.getMessage.contains("linux-x86_64"))
  }

  test("an error is an exception with the native message") {
    NativeLibrary.load()
    val failure = intercept[CometNativeException](Native.fail(0))
    assert(failure.getMessage.contains("failed on purpose"))
  }

  test("a panic is an exception, and the library still works") {
    NativeLibrary.load()
    val failure = intercept[CometNativeException](Native.fail(1))
    assert(failure.getMessage.contains("panicked on purpose"))
    val encoder = Native.newRowEncoder(descriptor, 0, 1)
    val end = Native.encodeRows(
      encoder,
      Array.emptyLongArray,
      Array.emptyLongArray,
      0,
      true,
      new Array[Long](4)
    )
    assert(end.remaining() === 40)
    Native.closeRowEncoder(encoder)
  }

  test("a schema that native code does not know is refused") {
    NativeLibrary.load()
    val failure = intercept[CometNativeException](Native.newBlockDecoder(Array[Byte](1, 2, 3)))
    assert(failure.getMessage.contains("schema"))
  }

  test("a corrupt block is named by its index") {
    NativeLibrary.load()
    val encoder = Native.newRowEncoder(descriptor, 0, 1)
    val end = Native.encodeRows(
      encoder,
      Array.emptyLongArray,
      Array.emptyLongArray,
      0,
      true,
      new Array[Long](4)
    )
    val run = new Array[Byte](80)
    end.duplicate().get(run, 0, 40)
    end.duplicate().get(run, 40, 40)
    run(48) = (run(48) ^ 1).toByte
    Native.closeRowEncoder(encoder)
    val decoder = Native.newBlockDecoder(descriptor)
    val address = Platform.allocateMemory(80)
    try {
      Platform.copyMemory(run, Platform.BYTE_ARRAY_OFFSET, null, address, 80)
      val failure = intercept[CometCorruptBlockException] {
        Native.decodeBlocks(decoder, address, 80, new Array[Long](4), new Array[Long](2))
      }
      assert(failure.blockIndex() === 1)
      assert(failure.getMessage.contains("checksum"))
    } finally {
      Platform.freeMemory(address)
      Native.closeBlockDecoder(decoder)
    }
  }

  test("a closed handle is an exception") {
    NativeLibrary.load()
    val failure = intercept[CometNativeException] {
      Native.encodeRows(0, Array.emptyLongArray, Array.emptyLongArray, 0, true, new Array[Long](4))
    }
    assert(failure.getMessage.contains("closed"))
  }
}
