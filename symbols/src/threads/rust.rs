//! Rust's `std::thread`: the closure in the trait object that the new thread is given.
//!
//! The argument holds a `Box<dyn FnOnce()>`, alone or, in newer versions of the library, with the
//! thread's handle. Its table names the closure in two ways. The *drop glue* has the closure's type
//! in its symbol, but the compiler merges the glue of types that are dropped alike: it is believed
//! only if no other table with the same glue has other code. The *code* calls, by way of the
//! library's `__rust_begin_short_backtrace`, the closure, or has it inlined.

use super::types::arguments;
use super::{ThreadFunction, ThreadKind, ThreadStart, offset_in};
use crate::identity::ObjectKey;
use crate::image::Image;
use crate::symbolizer::Symbolizer;

/// Words that may hold the pointer to the table.
const LOOK_AT: usize = 4;
/// Bytes of a trait object's own type; larger is no size.
const LARGEST: u64 = 1 << 24;
/// Functions of the library that are followed.
const DEEPEST: usize = 24;
/// Bytes of a function that are looked at.
const LONGEST: u64 = 4096;
/// Steps between addresses that are asked for inlined functions.
const STEP: usize = 4;

/// Whether `routine` is where the library's threads start.
pub(super) fn is_start(routine: &str) -> bool {
    routine.contains("::thread_start") || routine.contains("::thread_start::")
}

/// The closure that the thread runs; `None` if the argument holds none.
pub(super) fn function(symbolizer: &Symbolizer, start: &ThreadStart<'_>) -> Option<ThreadFunction> {
    let (object, table) = start.words.iter().take(LOOK_AT).find_map(|word| {
        let (object, svma) = word.file?;
        Table::read(&*symbolizer.image(object)?, svma).map(|table| (object, table))
    })?;
    let glue =
        table.drop.filter(|_| table.is_alone).and_then(|drop| name(symbolizer, object, drop));
    let by_glue = glue.as_deref().and_then(closure);
    let called = called(symbolizer, object, table.call);
    let (found, source) = match called {
        Some(Called { name, source }) => (Some(name), source),
        None => (None, None),
    };
    let name = by_glue.map(str::to_owned).or(found);
    Some(ThreadFunction {
        name: name.unwrap_or_else(|| offset_in(object, table.call)),
        kind: ThreadKind::Rust,
        wrapper: None,
        code: Some((object.clone(), table.call)),
        source,
    })
}

/// A trait object's table.
struct Table {
    drop: Option<u64>,
    call: u64,
    /// No other table with this drop glue has other code.
    is_alone: bool,
}

impl Table {
    fn read(image: &Image, svma: u64) -> Option<Self> {
        if image.is_code(svma) {
            return None;
        }
        let layout = |table: u64| {
            let (size, alignment) =
                (image.word(table.wrapping_add(8))?, image.word(table.wrapping_add(16))?);
            (size < LARGEST && alignment.is_power_of_two() && alignment <= 4096).then_some(())
        };
        layout(svma)?;
        let drop = image.pointer(svma).and_then(|drop| drop.svma());
        let call = image.pointer(svma.wrapping_add(24))?.svma()?;
        let is_table = drop.is_none_or(|drop| image.is_code(drop)) && image.is_code(call);
        let is_alone = |drop| {
            // Where the linker left no relocations, other tables can't be found.
            let all = image.pointers_to(drop);
            all.contains(&svma)
                // Places that point to the glue may be no tables, such as the entry of a GOT.
                && all.iter().filter(|&&other| layout(other).is_some()).all(|&other| {
                    image.pointer(other.wrapping_add(24)).and_then(|call| call.svma()) == Some(call)
                })
        };
        is_table.then(|| Self { drop, call, is_alone: drop.is_some_and(is_alone) })
    }
}

/// `app::main::{{closure}}` of the drop glue's
/// `core::ptr::drop_in_place<std::thread::…::spawn_unchecked<app::main::{{closure}},()>::{{closure}}>`.
fn closure(glue: &str) -> Option<&str> {
    ["spawn_unchecked_", "spawn_unchecked", "spawn_unchecked_::", "spawn_unchecked::"]
        .iter()
        .find_map(|name| arguments(glue, name).first().copied())
}

struct Called {
    name: String,
    source: Option<(String, u32)>,
}

/// The first function that is not the library's own, in the code at `svma` or in what that calls.
fn called(symbolizer: &Symbolizer, object: &ObjectKey, svma: u64) -> Option<Called> {
    let image = symbolizer.image(object)?;
    let mut queue = vec![svma];
    let mut at = 0;
    let mut direct: Vec<(u64, String)> = Vec::new();
    while at < queue.len().min(DEEPEST) {
        let function = queue[at];
        at += 1;
        let (start, len, own) = symbolizer.function_at(object, function)?;
        // Version 0 symbols have the closure in the name; the library runs one of its own first.
        let first = arguments(&own, "__rust_begin_short_backtrace::").first().copied();
        if let Some(name) = first.filter(|name| !is_library(name)) {
            return Some(Called { name: name.to_owned(), source: None });
        }
        let len = len.min(LONGEST);
        if let Some(found) = inlined(symbolizer, object, start..start.saturating_add(len)) {
            return Some(found);
        }
        let bytes = image.bytes(start, len);
        for target in call_targets(&bytes, start) {
            let Some((entry, _, name)) = symbolizer.function_at(object, target) else { continue };
            if entry != target {
                continue;
            }
            if !is_library(&name) {
                if own.contains("__rust_begin_short_backtrace") || own.contains("call_once") {
                    direct.push((target, name));
                }
            } else if leads_on(&name) && !queue.contains(&target) {
                queue.push(target);
            }
        }
        if !direct.is_empty() {
            break;
        }
    }
    direct.sort();
    direct.dedup();
    // Several calls are those of a closure that was inlined: none of them is what the thread runs.
    let [(target, name)] = direct.as_slice() else { return None };
    let location = symbolizer.locate(object, *target).ok().flatten();
    let frame = location.and_then(|mut location| location.frames.pop()).unwrap_or_default();
    Some(Called { name: name.clone(), source: frame.file.zip(frame.line) })
}

/// The outermost function inlined in `range` that is not the library's.
fn inlined(
    symbolizer: &Symbolizer,
    object: &ObjectKey,
    range: std::ops::Range<u64>,
) -> Option<Called> {
    for svma in range.step_by(STEP) {
        let Some(location) = symbolizer.locate(object, svma).ok().flatten() else { continue };
        let found =
            location.frames.into_iter().rev().find(|frame| {
                frame.function.as_deref().is_some_and(|function| !is_library(function))
            });
        if let Some(frame) = found {
            let source = frame.file.zip(frame.line);
            return frame.function.map(|name| Called { name, source });
        }
    }
    None
}

/// Targets of what look like direct calls, jumps and address loads (`lea`: a function that is passed
/// on) in code at `svma`. A byte may be part of another instruction, so a target counts only if a
/// function starts there.
fn call_targets(bytes: &[u8], svma: u64) -> Vec<u64> {
    const CALL: u8 = 0xe8;
    const JUMP: u8 = 0xe9;
    const LOAD_ADDRESS: u8 = 0x8d;
    let mut targets = Vec::new();
    for at in 0..bytes.len() {
        let displacement_at = match bytes[at..] {
            [CALL | JUMP, ..] => at + 1,
            // The operand is relative to the instruction pointer.
            [LOAD_ADDRESS, operand, ..] if operand & 0xc7 == 0x05 => at + 2,
            _ => continue,
        };
        let Some(offset) = bytes.get(displacement_at..displacement_at + 4) else { continue };
        let offset = i32::from_le_bytes([offset[0], offset[1], offset[2], offset[3]]);
        let next = svma.wrapping_add(displacement_at as u64 + 4);
        targets.push(next.wrapping_add_signed(offset.into()));
    }
    targets
}

fn name(symbolizer: &Symbolizer, object: &ObjectKey, svma: u64) -> Option<String> {
    let (start, _, name) = symbolizer.function_at(object, svma)?;
    (start == svma).then_some(name)
}

/// Whether a function is part of Rust's own library.
fn is_library(name: &str) -> bool {
    const CRATES: [&str; 5] = ["std::", "core::", "alloc::", "__rust", "hashbrown::"];
    let bare = name.trim_start_matches(['<', '&', '(', '*']);
    CRATES.iter().any(|name| bare.starts_with(name)) || !name.contains("::")
}

/// Whether a function of the library is on the way from a thread's start to its closure.
fn leads_on(name: &str) -> bool {
    const WAY: [&str; 8] = [
        "__rust_begin_short_backtrace",
        "call_once",
        "catch_unwind",
        "do_call",
        "panicking::try",
        "panicking::catch",
        "__rust_try",
        "spawn_unchecked",
    ];
    WAY.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closure_in_the_name_of_the_glue() {
        let legacy = "core::ptr::drop_in_place<std::thread::Builder::spawn_unchecked_<app::main::{{closure}},()>::{{closure}}>";
        assert_eq!(closure(legacy), Some("app::main::{{closure}}"));
        let v0 = "core::ptr::drop_in_place::<std::thread::lifecycle::spawn_unchecked<app::work, ()>::{closure#1}>";
        assert_eq!(closure(v0), Some("app::work"));
        assert_eq!(closure("core::ptr::drop_in_place<alloc::string::String>"), None);
    }

    #[test]
    fn calls_and_jumps_are_found() {
        let code = [0x90, 0xe8, 0x0a, 0, 0, 0, 0xe9, 0xf5, 0xff, 0xff, 0xff];
        assert_eq!(call_targets(&code, 0x1000), [0x1010, 0x1000]);
        assert_eq!(call_targets(&code[..4], 0x1000), [] as [u64; 0]);
        assert_eq!(call_targets(&[0x48, 0x8d, 0x3d, 1, 0, 0, 0], 0x1000), [0x1008]);
    }
}
