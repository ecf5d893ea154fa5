//! Errors and panics become Java exceptions.

use arrow_schema::ArrowError;
use comet_block::BlockError;
use comet_row::RowError;
use jni::errors::ErrorPolicy;
use jni::objects::JThrowable;
use jni::strings::JNIString;
use jni::{Env, EnvUnowned, jni_sig, jni_str};

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

/// Throws `CometCorruptBlockException` for corrupt blocks and `CometNativeException` for all else.
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
            match &error {
                BridgeError::Read {
                    index,
                    source: BlockError::Corrupt(_),
                } => throw_corrupt(env, *index, &error.to_string())?,
                _ => throw_native(env, &error.to_string())?,
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
