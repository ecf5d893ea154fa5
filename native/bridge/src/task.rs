//! The task behind a native shuffle writer: calls up into the JVM.

use std::fmt;
use std::sync::Arc;

use comet_memory::{MemoryError, SparkMemory};
use comet_vector::JavaHeap;
use jni::objects::{JMethodID, JObject, JString, JThrowable};
use jni::refs::Global;
use jni::signature::{Primitive, ReturnType};
use jni::sys::jvalue;
use jni::{Env, JValueOwned, JavaVM, jni_sig, jni_str};

use crate::error::BridgeError;

/// An exception that Java code threw while native code called it. It is thrown again when the native
/// code returns.
pub(crate) struct JavaFailure {
    pub(crate) throwable: Global<JThrowable<'static>>,
}

impl fmt::Debug for JavaFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JavaFailure")
    }
}

impl fmt::Display for JavaFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a call into the JVM threw an exception")
    }
}

impl std::error::Error for JavaFailure {}

/// Why a call up failed.
pub(crate) type CallError = Box<dyn std::error::Error + Send + Sync>;

/// An `org.apache.spark.comet.NativeShuffleTask`; the methods are documented there.
pub(crate) struct JavaTask {
    vm: JavaVM,
    task: Global<JObject<'static>>,
    next_batch: JMethodID,
    split_batch: JMethodID,
    copy_array: JMethodID,
    acquire_memory: JMethodID,
    release_memory: JMethodID,
    memory_limit: JMethodID,
    spill_file: JMethodID,
    is_killed: JMethodID,
}

impl fmt::Debug for JavaTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JavaTask")
    }
}

impl JavaTask {
    pub(crate) fn new(env: &mut Env, task: &JObject) -> Result<Self, BridgeError> {
        let class = env.get_object_class(task)?;
        Ok(Self {
            vm: env.get_java_vm()?,
            task: env.new_global_ref(task)?,
            next_batch: env.get_method_id(&class, jni_str!("nextBatch"), jni_sig!("(J)J"))?,
            split_batch: env.get_method_id(&class, jni_str!("splitBatch"), jni_sig!("()J"))?,
            copy_array: env.get_method_id(&class, jni_str!("copyArray"), jni_sig!("(JJJJ)V"))?,
            acquire_memory: env.get_method_id(
                &class,
                jni_str!("acquireMemory"),
                jni_sig!("(J)J"),
            )?,
            release_memory: env.get_method_id(
                &class,
                jni_str!("releaseMemory"),
                jni_sig!("(J)V"),
            )?,
            memory_limit: env.get_method_id(&class, jni_str!("memoryLimit"), jni_sig!("()J"))?,
            spill_file: env.get_method_id(
                &class,
                jni_str!("spillFile"),
                jni_sig!("()Ljava/lang/String;"),
            )?,
            is_killed: env.get_method_id(&class, jni_str!("isKilled"), jni_sig!("()Z"))?,
        })
    }

    /// Calls a method of the task and reads its result.
    ///
    /// # Safety
    ///
    /// `method` must take a long for each of `arguments` and return what `returns` says.
    unsafe fn call<T>(
        &self,
        method: JMethodID,
        returns: ReturnType,
        arguments: &[i64],
        read: impl FnOnce(&mut Env, JValueOwned) -> jni::errors::Result<T>,
    ) -> Result<T, CallError> {
        let arguments: Vec<_> = arguments.iter().map(|long| jvalue { j: *long }).collect();
        self.vm.attach_current_thread(|env| {
            env.with_local_frame(4, |env| {
                // SAFETY: the caller vouches for the signature; the method is the task's.
                let called =
                    unsafe { env.call_method_unchecked(&self.task, method, returns, &arguments) };
                match called.and_then(|value| read(env, value)) {
                    Err(jni::errors::Error::JavaException) => Err(caught(env)?),
                    other => Ok(other?),
                }
            })
        })
    }

    fn call_for_long(&self, method: JMethodID, arguments: &[i64]) -> Result<i64, CallError> {
        let returns = ReturnType::Primitive(Primitive::Long);
        // SAFETY: only methods are passed that take longs and return one.
        unsafe { self.call(method, returns, arguments, |_, value| value.j()) }
    }

    /// The address of the next batch's descriptor, 0 at the end. The batch may take `budget` bytes.
    pub(crate) fn next_batch(&self, budget: usize) -> Result<i64, CallError> {
        self.call_for_long(self.next_batch, &[to_long(budget)])
    }

    /// The address of the descriptor of the first half of the batch that was too large.
    pub(crate) fn split_batch(&self) -> Result<i64, CallError> {
        self.call_for_long(self.split_batch, &[])
    }

    /// Calls a method that returns nothing.
    ///
    /// # Safety
    ///
    /// `method` must take a long for each of `arguments` and return nothing.
    unsafe fn call_for_nothing(
        &self,
        method: JMethodID,
        arguments: &[i64],
    ) -> Result<(), CallError> {
        let returns = ReturnType::Primitive(Primitive::Void);
        // SAFETY: as the caller vouches.
        unsafe { self.call(method, returns, arguments, |_, _| Ok(())) }
    }

    /// Where to spill.
    pub(crate) fn spill_file(&self) -> Result<String, CallError> {
        let read = |env: &mut Env, value: JValueOwned| {
            let path = value.l()?;
            env.cast_local::<JString>(path)?.try_to_string(env)
        };
        // SAFETY: the method takes nothing and returns a string.
        unsafe { self.call(self.spill_file, ReturnType::Object, &[], read) }
    }

    /// Whether the task was killed; also if nobody can tell any more.
    pub(crate) fn is_killed(&self) -> bool {
        let returns = ReturnType::Primitive(Primitive::Boolean);
        // SAFETY: the method takes nothing and returns a boolean.
        unsafe { self.call(self.is_killed, returns, &[], |_, value| value.z()) }.unwrap_or(true)
    }
}

/// Takes the pending exception, so that native code can go on to clean up after itself.
fn caught(env: &mut Env) -> jni::errors::Result<CallError> {
    let Some(throwable) = env.exception_occurred() else {
        return Ok(Box::new(jni::errors::Error::JavaException));
    };
    env.exception_clear();
    let throwable = env.new_global_ref(throwable)?;
    Ok(Box::new(JavaFailure { throwable }))
}

impl SparkMemory for JavaTask {
    fn acquire(&self, bytes: usize) -> Result<usize, MemoryError> {
        let granted = self.call_for_long(self.acquire_memory, &[to_long(bytes)]);
        Ok(to_size(granted.map_err(spark_error)?))
    }

    fn release(&self, bytes: usize) -> Result<(), MemoryError> {
        // SAFETY: the method takes a long and returns nothing.
        let released = unsafe { self.call_for_nothing(self.release_memory, &[to_long(bytes)]) };
        released.map_err(spark_error)
    }

    fn task_limit(&self) -> Result<usize, MemoryError> {
        let limit = self.call_for_long(self.memory_limit, &[]);
        Ok(to_size(limit.map_err(spark_error)?))
    }
}

impl JavaHeap for JavaTask {
    fn copy(&self, array: usize, offset: usize, target: &mut [u8]) -> Result<(), CallError> {
        let address = target.as_mut_ptr() as i64;
        let arguments = [
            to_long(array),
            to_long(offset),
            address,
            to_long(target.len()),
        ];
        // SAFETY: the method takes four longs, returns nothing and writes only into the target.
        unsafe { self.call_for_nothing(self.copy_array, &arguments) }
    }
}

fn spark_error(error: CallError) -> MemoryError {
    MemoryError::Spark(Arc::from(error))
}

fn to_long(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn to_size(bytes: i64) -> usize {
    usize::try_from(bytes).unwrap_or(0)
}
