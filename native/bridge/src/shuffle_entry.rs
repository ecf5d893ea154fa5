//! The functions of `org.apache.spark.comet.Native` for native shuffle writers.

use std::sync::Arc;

use comet_shuffle_writer::ChecksumAlgorithm;
use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JLongArray, JObject, JString};
use jni::sys::{jboolean, jint, jlong};

use crate::entry::{close, to_codec, to_jlong, to_usize};
use crate::error::{BridgeError, guarded};
use crate::handle;
use crate::shuffle_writer::{NativeShuffleWriter, WriterReport, WriterSettings};
use crate::task::JavaTask;

/// `Native.newShuffleWriter`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // The signature is the JVM's.
pub extern "system" fn Java_org_apache_spark_comet_Native_newShuffleWriter<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    schema: JByteArray<'local>,
    partitioning: JByteArray<'local>,
    data_file: JString<'local>,
    codec: jint,
    zstd_level: jint,
    block_rows: jint,
    max_block_bytes: jlong,
    write_buffer_size: jlong,
    max_buffer_bytes: jlong,
    checksum: jint,
    fair_pool: jboolean,
    task: JObject<'local>,
) -> jlong {
    guarded(env, |env| {
        let limit = to_usize(max_buffer_bytes, "limit of buffered bytes")?;
        let settings = WriterSettings {
            data_file: data_file.try_to_string(env)?,
            codec: to_codec(codec, zstd_level)?,
            block_rows: to_usize(block_rows.into(), "rows of a block")?,
            max_block_bytes: to_usize(max_block_bytes, "bytes of a block")?,
            write_buffer_size: to_usize(write_buffer_size, "size of the write buffer")?,
            max_buffer_bytes: Some(limit).filter(|limit| *limit > 0),
            checksum: checksum_algorithm(checksum)?,
            fair_pool,
        };
        let schema = env.convert_byte_array(&schema)?;
        let partitioning = env.convert_byte_array(&partitioning)?;
        let task = Arc::new(JavaTask::new(env, &task)?);
        let writer = NativeShuffleWriter::new(&schema, &partitioning, settings, task)?;
        Ok(handle::open(writer))
    })
}

fn checksum_algorithm(id: jint) -> Result<ChecksumAlgorithm, BridgeError> {
    match id {
        0 => Ok(ChecksumAlgorithm::None),
        1 => Ok(ChecksumAlgorithm::Adler32),
        2 => Ok(ChecksumAlgorithm::Crc32),
        3 => Ok(ChecksumAlgorithm::Crc32c),
        other => Err(BridgeError::Argument(format!("checksum algorithm {other}"))),
    }
}

/// `Native.runShuffleWriter`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_runShuffleWriter<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    writer: jlong,
    lengths: JLongArray<'local>,
    checksums: JLongArray<'local>,
    stats: JLongArray<'local>,
) {
    guarded(env, |env| {
        // SAFETY: the JVM passes live writers only, and closes none that runs or spills.
        let writer = unsafe { handle::share::<NativeShuffleWriter>(writer) }?;
        let report = writer.run()?;
        let partitions = &report.output.partitions;
        let to_jlongs = |numbers: &[u64]| numbers.iter().map(|n| to_jlong(*n)).collect::<Vec<_>>();
        lengths.set_region(env, 0, &to_jlongs(&partitions.lengths))?;
        let values = partitions.checksums.iter().map(|sum| jlong::from(*sum));
        checksums.set_region(env, 0, &values.collect::<Vec<_>>())?;
        stats.set_region(env, 0, &to_jlongs(&numbers(&report)))?;
        Ok(())
    });
}

/// The statistics in the order of `Native.runShuffleWriter`.
fn numbers(report: &WriterReport) -> [u64; 18] {
    let metrics = &report.output.metrics;
    let sum = |of: fn(&comet_memory::ConsumerStats) -> u64| report.consumers.iter().map(of).sum();
    [
        metrics.rows,
        report.row_bytes,
        metrics.input_batches,
        metrics.blocks,
        metrics.spills,
        metrics.memory_bytes_spilled,
        metrics.disk_bytes_spilled,
        sum(|consumer| u64::try_from(consumer.peak).unwrap_or(u64::MAX)),
        report.import_nanos,
        metrics.partition_nanos,
        metrics.gather_nanos,
        metrics.encode_nanos,
        metrics.compress_nanos,
        metrics.write_nanos,
        sum(|consumer| consumer.acquire_calls),
        sum(|consumer| consumer.release_calls),
        sum(|consumer| consumer.acquired_bytes),
        sum(|consumer| consumer.spark_nanos),
    ]
}

/// `Native.spillShuffleWriter`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_spillShuffleWriter<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    writer: jlong,
    bytes: jlong,
) -> jlong {
    guarded(env, |_| {
        // SAFETY: the JVM passes live writers only, and closes none that runs or spills.
        let writer = unsafe { handle::share::<NativeShuffleWriter>(writer) }?;
        let freed = writer.spill(to_usize(bytes, "bytes to spill")?)?;
        Ok(jlong::try_from(freed).unwrap_or(jlong::MAX))
    })
}

/// `Native.shuffleMemoryTable`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_shuffleMemoryTable<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    writer: jlong,
) -> JObject<'local> {
    guarded(env, |env| {
        // SAFETY: the JVM passes live writers only, and closes none that runs or spills.
        let writer = unsafe { handle::share::<NativeShuffleWriter>(writer) }?;
        Ok(env.new_string(writer.memory_table())?.into())
    })
}

/// `Native.closeShuffleWriter`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_closeShuffleWriter<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    writer: jlong,
) {
    close::<NativeShuffleWriter>(env, writer);
}
