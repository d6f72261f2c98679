//! What a thread of the Python interpreter runs: the function's module and qualified name.
//!
//! The interpreter's objects are read in memory, instead of asking the interpreter: each function of its interface
//! that looks something up may allocate memory, run a property or `__getattr__` of the program, raise or clear an
//! exception, or create a `__dict__`. Reading changes nothing. It is safe because the creating thread holds the
//! interpreter's lock, so no object is freed or changed meanwhile, and because each word is only read where memory is
//! mapped.
//!
//! Everything is checked: each object must have the expected type, by the address of the type, which is an exported
//! symbol. If the interpreter's version or build has another layout, the checks fail, and there is no name. Supported
//! are CPython 3.8 to 3.13 (not the free-threaded build); the offsets are those of its headers.

mod objects;
#[cfg(test)]
mod tests;

pub use self::objects::Types;

use self::objects::{Layout, Name, Objects};
use crate::memory::Memory;
use crate::text::Text;

static RUN: Name = Name::new(b"run");
static TARGET: Name = Name::new(b"_target");
static NAME: Name = Name::new(b"_name");
static CALL: Name = Name::new(b"__call__");

/// In all versions, the callable is the second word of the interpreter's own start data.
const CALLABLE: usize = 1;
/// How deep callables in callables are followed.
const DEEPEST: usize = 4;

/// Appends `module.qualname`, NUL, and the thread's name to `text`; nothing if they can't be found. `start_words` are the first
/// words of what the interpreter gives the thread's start routine.
pub fn name<const N: usize>(
    reader: &mut impl Memory,
    types: &Types,
    start_words: &[u64],
    text: &mut Text<N>,
) {
    let Some(&callable) = start_words.get(CALLABLE) else { return };
    let version = if types.version == 0 { None } else { reader.word(types.version) };
    let Some(layout) = Layout::of_version(version) else { return };
    let mut objects = Objects { reader, types, layout };
    let callable = callable as usize;
    // `threading` passes the bound method `_bootstrap` of a `Thread` object.
    let thread = objects.bound(callable).filter(|&(function, _)| {
        objects
            .function(function)
            .is_some_and(|found| objects.is_text(found.name, b"Thread._bootstrap"))
    });
    let Some((_, thread)) = thread else {
        put_callable(&mut objects, callable, text, 0);
        return;
    };
    let run = objects.method(thread, &RUN);
    let inherited = run.and_then(|run| objects.function(run)).is_some_and(|found| {
        objects.is_text(found.name, b"Thread.run") && objects.is_text(found.module, b"threading")
    });
    let target = if inherited { objects.attribute(thread, &TARGET) } else { None };
    // `Thread.run` does nothing if the target is None.
    let target = target.filter(|&target| !objects.is_none(target));
    let Some(runs) = target.or(run) else { return };
    if !put_callable(&mut objects, runs, text, 0) {
        return;
    }
    if let Some(name) = objects.attribute(thread, &NAME) {
        text.push(b"\0");
        objects.put(name, text);
    }
}

/// Appends the name of what a call of `object` runs. Returns false if it is unknown.
fn put_callable<const N: usize>(
    objects: &mut Objects<'_, impl Memory>,
    object: usize,
    text: &mut Text<N>,
    depth: usize,
) -> bool {
    if depth > DEEPEST {
        return false;
    }
    if let Some((function, _)) = objects.bound(object) {
        return put_callable(objects, function, text, depth + 1);
    }
    if let Some(function) = objects.function(object) {
        if objects.put(function.module, text) {
            text.push(b".");
        }
        return objects.put(function.name, text);
    }
    if let Some((name, module)) = objects.builtin(object) {
        if objects.put(module, text) {
            text.push(b".");
        }
        return objects.put_c(name, text);
    }
    let Some(type_name) = objects.type_name(object) else { return false };
    if objects.is_c_text(type_name, b"functools.partial") {
        // partialobject: the callable comes first.
        let called = objects.field(object, 2);
        return called.is_some_and(|called| put_callable(objects, called, text, depth + 1));
    }
    if let Some(call) = objects.method(object, &CALL)
        && objects.function(call).is_some()
    {
        return put_callable(objects, call, text, DEEPEST);
    }
    objects.put_c(type_name, text)
}
