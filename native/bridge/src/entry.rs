//! The functions that `org.apache.spark.comet.Native` declares; its documentation is theirs.

use comet_block::Codec;
use jni::objects::{JByteArray, JByteBuffer, JClass, JLongArray, JObject};
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned};

use crate::block_decoder::BlockDecoder;
use crate::error::{BridgeError, guarded};
use crate::handle;
use crate::vectors;

/// Version and revision, as the JVM knows its own.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "+",
    env!("COMET_SHUFFLE_REVISION")
);

/// `Native.version`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_version<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> JObject<'local> {
    guarded(env, |env| Ok(env.new_string(VERSION)?.into()))
}

/// `Native.fail`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_fail<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    kind: jint,
) {
    guarded(env, |_| match kind {
        0 => Err::<(), _>(BridgeError::Argument("failed on purpose".to_owned())),
        #[allow(clippy::panic)] // To see that panics stay on this side.
        _ => panic!("panicked on purpose"),
    });
}

/// `Native.wrap`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_wrap<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    address: jlong,
    length: jint,
) -> JByteBuffer<'local> {
    guarded(env, |env| {
        let length = to_usize(length.into(), "length")?;
        wrap(env, address as *mut u8, length)
    })
}

/// `Native.newBlockDecoder`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_newBlockDecoder<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    schema: JByteArray<'local>,
) -> jlong {
    guarded(env, |env| {
        let descriptor = env.convert_byte_array(&schema)?;
        Ok(handle::open(BlockDecoder::new(&descriptor)?))
    })
}

/// `Native.decodeBlocks`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_decodeBlocks<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    decoder: jlong,
    buffer: jlong,
    length: jlong,
    vector_buffers: JLongArray<'local>,
    stats: JLongArray<'local>,
) -> jint {
    guarded(env, |env| {
        // SAFETY: the JVM passes live decoders only, each from its task's thread.
        let decoder = unsafe { handle::borrow::<BlockDecoder>(decoder) }?;
        let length = to_usize(length, "length")?;
        if buffer == 0 {
            return Err(BridgeError::Argument("no buffer".to_owned()));
        }
        // SAFETY: the JVM owns `length` initialised bytes there and waits for this call.
        let run = unsafe { std::slice::from_raw_parts(buffer as *const u8, length) };
        let batch = decoder.decode(run)?;
        let rows = jint::try_from(batch.num_rows())
            .map_err(|_| BridgeError::Argument(format!("{} rows", batch.num_rows())))?;
        let columns = vectors::columns(batch);
        let memory = vectors::memory_size(&columns) as u64;
        let described = vectors::describe(&columns)?;
        vector_buffers.set_region(env, 0, &described)?;
        stats.set_region(env, 0, &[decoder.nanos(), memory].map(to_jlong))?;
        Ok(rows)
    })
}

/// `Native.writeRows`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_writeRows<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    decoder: jlong,
    first: jint,
    max_bytes: jlong,
    rows: JLongArray<'local>,
) -> jint {
    guarded(env, |env| {
        // SAFETY: the JVM passes live decoders only, each from its task's thread.
        let decoder = unsafe { handle::borrow::<BlockDecoder>(decoder) }?;
        let first = to_usize(first.into(), "row")?;
        let written = decoder.write_rows(first, to_usize(max_bytes, "size")?)?;
        let lengths = written.lengths;
        let numbers = [
            vectors::address(written.address),
            vectors::address(lengths.as_ptr().cast()),
            to_jlong(written.memory as u64),
        ];
        rows.set_region(env, 0, &numbers)?;
        jint::try_from(lengths.len())
            .map_err(|_| BridgeError::Argument(format!("{} rows", lengths.len())))
    })
}

/// `Native.exportColumn`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_exportColumn<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    decoder: jlong,
    column: jint,
) -> jlong {
    guarded(env, |_| {
        // SAFETY: the JVM passes live decoders only, each from its task's thread.
        let decoder = unsafe { handle::borrow::<BlockDecoder>(decoder) }?;
        decoder.export(to_usize(column.into(), "column")?)
    })
}

/// `Native.reallocate`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_reallocate<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    address: jlong,
    bytes: jlong,
    wanted: jlong,
) -> jlong {
    guarded(env, |_| {
        let (bytes, wanted) = (to_usize(bytes, "bytes")?, to_usize(wanted, "wanted bytes")?);
        // SAFETY: the JVM passes memory of this function's that it hasn't handed over or freed.
        Ok(unsafe { comet_vector::reallocate(address, bytes, wanted) })
    })
}

/// `Native.free`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_free<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    address: jlong,
    bytes: jlong,
) {
    guarded(env, |_| {
        let bytes = to_usize(bytes, "bytes")?;
        // SAFETY: as for `reallocate`; the JVM gives it up.
        unsafe { comet_vector::free(address, bytes) };
        Ok(())
    });
}

/// `Native.releaseArray`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_releaseArray<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    array: jlong,
) {
    guarded(env, |_| {
        // SAFETY: the JVM gives up an exported array, which no import goes on with.
        unsafe { comet_vector::release(array) };
        Ok(())
    });
}

/// `Native.closeBlockDecoder`
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_apache_spark_comet_Native_closeBlockDecoder<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    decoder: jlong,
) {
    close::<BlockDecoder>(env, decoder);
}

/// What all entry points do that close a handle.
pub(crate) fn close<T>(env: EnvUnowned, object: jlong) {
    guarded(env, |_| {
        // SAFETY: the JVM closes a handle once and forgets it.
        unsafe { handle::close::<T>(object) };
        Ok(())
    });
}

/// A direct buffer over memory of ours; the JVM knows how long it is valid.
pub(crate) fn wrap<'local>(
    env: &mut Env<'local>,
    address: *mut u8,
    length: usize,
) -> Result<JByteBuffer<'local>, BridgeError> {
    if i32::try_from(length).is_err() {
        return Err(BridgeError::Argument(format!(
            "encoded rows of one partition take {length} bytes, more than 2 GiB; lower \
             spark.comet.shuffle.jvm.batchSize"
        )));
    }
    // SAFETY: `address` is valid for `length` bytes until the JVM's next call with its owner.
    Ok(unsafe { env.new_direct_byte_buffer(address, length) }?)
}

/// The codec that the JVM numbers as block headers do.
pub(crate) fn to_codec(id: jint, zstd_level: jint) -> Result<Codec, BridgeError> {
    let id =
        u8::try_from(id).map_err(|_| BridgeError::Argument(format!("codec {id} is unknown")))?;
    Codec::from_id(id, zstd_level).map_err(BridgeError::Write)
}

pub(crate) fn to_usize(number: i64, what: &str) -> Result<usize, BridgeError> {
    usize::try_from(number).map_err(|_| BridgeError::Argument(format!("{what} {number}")))
}

pub(crate) fn to_jlong(number: u64) -> jlong {
    jlong::try_from(number).unwrap_or(jlong::MAX)
}
