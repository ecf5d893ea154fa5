//! Errors and panics become Java exceptions.

use arrow_schema::ArrowError;
use comet_block::BlockError;
use comet_memory::MemoryError;
use comet_row::RowError;
use comet_shuffle_writer::ShuffleError;
use comet_vector::VectorError;
use datafusion_common::DataFusionError;
use jni::errors::ErrorPolicy;
use jni::objects::JThrowable;
use jni::strings::JNIString;
use jni::{Env, EnvUnowned, jni_sig, jni_str};

use crate::task::JavaFailure;

/// Why a call from the JVM failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeError {
    /// A call into the JVM failed. If it threw, the exception is pending and stays so.
    #[error("a call into the JVM failed: {0}")]
    Jni(#[from] jni::errors::Error),
    /// An argument that the JVM side should never pass.
    #[error("invalid argument: {0}")]
    Argument(String),
    /// Rows could not be turned into a batch.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A block could not be written.
    #[error(transparent)]
    Write(BlockError),
    /// A block could not be read.
    #[error("block {index} of the batch: {source}")]
    Read {
        /// Which block of the run, from 0.
        index: usize,
        /// What was wrong with it.
        source: BlockError,
    },
    /// Batches could not be joined.
    #[error("joining decoded blocks: {0}")]
    Join(#[from] ArrowError),
    /// Vectors could not be taken over or handed on.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// A shuffle could not be written.
    #[error(transparent)]
    Shuffle(ShuffleError),
}

impl From<ShuffleError> for BridgeError {
    fn from(error: ShuffleError) -> Self {
        match error {
            ShuffleError::DataFusion(error) => error.into(),
            ShuffleError::Row(error) => Self::Row(error),
            ShuffleError::Block(error) => Self::Write(error),
            other => Self::Shuffle(other),
        }
    }
}

impl From<DataFusionError> for BridgeError {
    /// A plan wraps the errors of its parts.
    fn from(error: DataFusionError) -> Self {
        let DataFusionError::External(inner) = error else {
            return Self::Shuffle(ShuffleError::DataFusion(error));
        };
        let inner = match inner.downcast::<ShuffleError>() {
            Ok(shuffle) => return (*shuffle).into(),
            Err(inner) => inner,
        };
        let inner = match inner.downcast::<MemoryError>() {
            Ok(memory) => return Self::Shuffle((*memory).into()),
            Err(inner) => inner,
        };
        match inner.downcast::<VectorError>() {
            Ok(vector) => match *vector {
                // What Java code threw below is the error.
                VectorError::Heap(cause) => {
                    Self::Shuffle(ShuffleError::DataFusion(DataFusionError::External(cause)))
                }
                vector => Self::Vector(vector),
            },
            Err(inner) => Self::Shuffle(ShuffleError::DataFusion(DataFusionError::External(inner))),
        }
    }
}

impl BridgeError {
    /// The exception that Java code threw below, if that was the cause.
    fn java_failure(&self) -> Option<&JavaFailure> {
        let Self::Shuffle(error) = self else {
            return None;
        };
        match error {
            ShuffleError::Memory(MemoryError::Spark(cause)) => cause.downcast_ref(),
            ShuffleError::Io { source, .. } => source.get_ref()?.downcast_ref(),
            ShuffleError::DataFusion(DataFusionError::External(cause)) => cause.downcast_ref(),
            _ => None,
        }
    }
}

/// Runs the body of a JNI entry point: an error or a panic in it becomes a Java exception, and the
/// entry point returns the default value, which the JVM doesn't look at then.
pub(crate) fn guarded<'local, T, F>(mut env: EnvUnowned<'local>, body: F) -> T
where
    T: Default,
    F: FnOnce(&mut Env<'local>) -> Result<T, BridgeError>,
{
    env.with_env(body).resolve::<ThrowCometException>()
}

/// Throws what Java code threw below; else `CometCorruptBlockException` for corrupt blocks,
/// `IOException` where a file failed, `CometOutOfMemoryException` where Spark denied memory, and
/// `CometNativeException` for all else.
struct ThrowCometException;

impl<T: Default> ErrorPolicy<T, BridgeError> for ThrowCometException {
    type Captures<'unowned_env_local: 'native_method, 'native_method> = ();

    fn on_error<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut Self::Captures<'unowned_env_local, 'native_method>,
        error: BridgeError,
    ) -> jni::errors::Result<T> {
        // An exception that the JVM already has says more than ours would.
        if !env.exception_check() {
            if let Some(failure) = error.java_failure() {
                env.throw(&failure.throwable)?;
                return Ok(T::default());
            }
            let message = error.to_string();
            match &error {
                BridgeError::Read {
                    index,
                    source: BlockError::Corrupt(_),
                } => throw_corrupt(env, *index, &message)?,
                BridgeError::Shuffle(ShuffleError::Io { .. }) => {
                    env.throw_new(jni_str!("java/io/IOException"), JNIString::from(message))?;
                }
                BridgeError::Shuffle(ShuffleError::Memory(MemoryError::Denied {
                    requested,
                    available,
                    ..
                })) => throw_out_of_memory(env, &message, *requested, *available)?,
                _ => throw_native(env, &message)?,
            }
        }
        Ok(T::default())
    }

    fn on_panic<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut Self::Captures<'unowned_env_local, 'native_method>,
        payload: Box<dyn std::any::Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let text = payload
            .downcast_ref::<&'static str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        throw_native(
            env,
            &format!("the native library of Comet Shuffle panicked, please report it: {text}"),
        )?;
        Ok(T::default())
    }
}

fn throw_native(env: &mut Env, message: &str) -> jni::errors::Result<()> {
    env.throw_new(
        jni_str!("org/apache/spark/comet/CometNativeException"),
        JNIString::from(message),
    )
}

fn throw_corrupt(env: &mut Env, index: usize, message: &str) -> jni::errors::Result<()> {
    let message = env.new_string(message)?;
    let index = i32::try_from(index).unwrap_or(i32::MAX);
    let exception = env.new_object(
        jni_str!("org/apache/spark/comet/CometCorruptBlockException"),
        jni_sig!("(Ljava/lang/String;I)V"),
        &[(&message).into(), index.into()],
    )?;
    let exception = env.cast_local::<JThrowable>(exception)?;
    env.throw(exception)
}

fn throw_out_of_memory(
    env: &mut Env,
    message: &str,
    requested: usize,
    available: usize,
) -> jni::errors::Result<()> {
    let message = env.new_string(message)?;
    let bytes = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX).into();
    let exception = env.new_object(
        jni_str!("org/apache/spark/comet/CometOutOfMemoryException"),
        jni_sig!("(Ljava/lang/String;JJ)V"),
        &[(&message).into(), bytes(requested), bytes(available)],
    )?;
    let exception = env.cast_local::<JThrowable>(exception)?;
    env.throw(exception)
}
