//! The entry points of the row writers; see `org.apache.spark.comet.Native`.

use comet_row::{RowPage, RowPointer, compact_rows, fullest_first, sort_pointers};
use comet_shuffle_writer::{EncodeStats, RowEncoder, SortedRowsOptions};
use jni::objects::{JByteArray, JByteBuffer, JClass, JIntArray, JLongArray};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};

use crate::entry::{close, to_codec, to_jlong, to_usize, wrap};
use crate::error::{BridgeError, guarded};
use crate::handle;

/// `Native.newRowEncoder`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_newRowEncoder<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    schema: JByteArray<'local>,
    codec: jint,
    zstd_level: jint,
) -> jlong {
    guarded(env, |env| {
        let descriptor = env.convert_byte_array(&schema)?;
        let codec = to_codec(codec, zstd_level)?;
        Ok(handle::open(RowEncoder::new(&descriptor, codec)?))
    })
}

/// `Native.encodeRows`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // The signature is the JVM's.
pub extern "system" fn Java_org_apache_spark_comet_Native_encodeRows<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    encoder: jlong,
    pages: JLongArray<'local>,
    used: JLongArray<'local>,
    page_count: jint,
    last: jboolean,
    stats: JLongArray<'local>,
) -> JByteBuffer<'local> {
    guarded(env, |env| {
        // SAFETY: the JVM passes live encoders only, each from its task's thread.
        let encoder = unsafe { handle::borrow::<RowEncoder>(encoder) }?;
        let pages = read_pages(env, &pages, &used, page_count)?;
        // SAFETY: the JVM writes to and frees the pages on this very thread only.
        let done = unsafe { encoder.encode(&pages, last) }?;
        stats.set_region(env, 0, &numbers(done))?;
        wrap_blocks(env, encoder)
    })
}

/// `Native.sortRows`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_sortRows<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    pointers: jlong,
    count: jint,
    partitions: jint,
) -> jlong {
    guarded(env, |_| {
        let count = to_usize(count.into(), "row count")?;
        if count == 0 {
            return Ok(pointers);
        }
        // SAFETY: the JVM owns twice `count` initialised words there, aligned to 8 bytes, and waits
        // for this call.
        let words = unsafe { row_pointers_mut(pointers, 2 * count) };
        let (rows, scratch) = words.split_at_mut(count);
        let partitions = u32::try_from(partitions).unwrap_or(RowPointer::MAX_PARTITIONS);
        Ok(if sort_pointers(rows, scratch, partitions) {
            scratch.as_ptr() as jlong
        } else {
            pointers
        })
    })
}

/// `Native.fullestFirst`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_fullestFirst<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sorted: jlong,
    ordered: jlong,
    count: jint,
    wanted: jint,
) -> jint {
    guarded(env, |_| {
        let count = to_usize(count.into(), "row count")?;
        let wanted = to_usize(wanted.into(), "rows wanted")?;
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the JVM owns `count` initialised words at each of two places that don't overlap,
        // aligned to 8 bytes, and waits for this call.
        let (sorted, ordered) = unsafe {
            (
                row_pointers_mut(sorted, count),
                row_pointers_mut(ordered, count),
            )
        };
        Ok(to_jint(fullest_first(sorted, ordered, wanted)))
    })
}

/// `Native.compactRows`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // The signature is the JVM's.
pub extern "system" fn Java_org_apache_spark_comet_Native_compactRows<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    pointers: jlong,
    count: jint,
    pages: JLongArray<'local>,
    used: JLongArray<'local>,
    sizes: JLongArray<'local>,
    page_count: jint,
) -> jint {
    guarded(env, |env| {
        let count = to_usize(count.into(), "row count")?;
        if count == 0 {
            return Ok(0);
        }
        let places = read_pages(env, &pages, &used, page_count)?;
        let sizes = read_pages(env, &pages, &sizes, page_count)?;
        let sizes: Vec<_> = sizes.into_iter().map(|(_, size)| size).collect();
        // SAFETY: the JVM owns `count` initialised words there, aligned to 8 bytes, and waits for
        // this call.
        let pointers = unsafe { row_pointers_mut(pointers, count) };
        // SAFETY: the JVM writes to and frees the pages on this very thread only.
        let left = unsafe { compact_rows(&places, &sizes, pointers) }?;
        let bytes: Vec<_> = left.iter().map(|bytes| to_jlong(*bytes as u64)).collect();
        used.set_region(env, 0, &bytes)?;
        Ok(to_jint(left.len()))
    })
}

/// `Native.encodeSortedRows`
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // The signature is the JVM's.
pub extern "system" fn Java_org_apache_spark_comet_Native_encodeSortedRows<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    encoder: jlong,
    pointers: jlong,
    count: jint,
    pages: JLongArray<'local>,
    used: JLongArray<'local>,
    page_count: jint,
    block_rows: jint,
    last: jboolean,
    partitions: JIntArray<'local>,
    lengths: JLongArray<'local>,
    stats: JLongArray<'local>,
) -> JByteBuffer<'local> {
    guarded(env, |env| {
        // SAFETY: the JVM passes live encoders only, each from its task's thread.
        let encoder = unsafe { handle::borrow::<RowEncoder>(encoder) }?;
        let pages = read_pages(env, &pages, &used, page_count)?;
        let count = to_usize(count.into(), "row count")?;
        let options = SortedRowsOptions {
            block_rows: to_usize(block_rows.into(), "rows of a block")?.max(1),
            max_partitions: partitions.len(env)?.max(1),
            last,
        };
        let pointers = if count == 0 {
            &mut []
        } else {
            // SAFETY: the JVM owns `count` initialised words there, aligned to 8 bytes, and waits
            // for this call.
            unsafe { row_pointers_mut(pointers, count) }
        };
        // SAFETY: the JVM writes to and frees the pages on this very thread only.
        let (rows, done) = unsafe { encoder.encode_sorted(&pages, pointers, options) }?;
        let made = encoder.partitions();
        let ids = made.iter().map(|made| made.partition);
        let ids: Vec<_> = ids
            .map(|id| jint::try_from(id).unwrap_or(jint::MAX))
            .collect();
        let bytes: Vec<_> = made
            .iter()
            .map(|made| to_jlong(made.bytes as u64))
            .collect();
        partitions.set_region(env, 0, &ids)?;
        lengths.set_region(env, 0, &bytes)?;
        let [encode, compress, memory, blocks] = numbers(done);
        let [rows, made] = [rows, made.len()].map(|count| to_jlong(count as u64));
        let numbers = [encode, compress, memory, blocks, rows, made];
        stats.set_region(env, 0, &numbers)?;
        wrap_blocks(env, encoder)
    })
}

/// `Native.closeRowEncoder`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_closeRowEncoder<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    encoder: jlong,
) {
    close::<RowEncoder>(env, encoder);
}

/// # Safety
///
/// There must be `count` initialised words at `address`, which must be aligned to 8 bytes and belong to
/// nobody else for as long as they are in use.
unsafe fn row_pointers_mut<'a>(address: jlong, count: usize) -> &'a mut [RowPointer] {
    // SAFETY: the caller vouches for the memory; a pointer is a word, any of which is valid.
    unsafe { std::slice::from_raw_parts_mut(address as *mut RowPointer, count) }
}

fn numbers(stats: EncodeStats) -> [jlong; 4] {
    [
        stats.encode_nanos,
        stats.compress_nanos,
        stats.memory,
        stats.blocks,
    ]
    .map(to_jlong)
}

fn to_jint(number: usize) -> jint {
    jint::try_from(number).unwrap_or(jint::MAX)
}

fn wrap_blocks<'local>(
    env: &mut Env<'local>,
    encoder: &mut RowEncoder,
) -> Result<JByteBuffer<'local>, BridgeError> {
    let blocks = encoder.blocks();
    wrap(env, blocks.as_mut_ptr(), blocks.len())
}

fn read_pages(
    env: &mut Env,
    pages: &JLongArray,
    used: &JLongArray,
    count: jint,
) -> Result<Vec<RowPage>, BridgeError> {
    let count = to_usize(count.into(), "page count")?;
    let mut addresses = vec![0; count];
    let mut lengths = vec![0; count];
    pages.get_region(env, 0, &mut addresses)?;
    used.get_region(env, 0, &mut lengths)?;
    addresses
        .into_iter()
        .zip(lengths)
        .map(|(address, length)| Ok((address as *const u8, to_usize(length, "page length")?)))
        .collect()
}
