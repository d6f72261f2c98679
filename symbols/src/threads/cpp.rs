//! `std::thread` of libstdc++ and of libc++, and Boost's.

use super::types::{arguments, offset_of_first, parameters};
use super::{ThreadFunction, ThreadKind, ThreadStart, Word};
use crate::demangle::demangle;
use crate::image::Pointer;
use crate::symbolizer::Symbolizer;

const STATE: &str = "std::thread::_State_impl<";
const BOOST_DATA: &str = "boost::detail::thread_data";
const ASYNC_STATES: [&str; 2] =
    ["std::__future_base::_Async_state_impl", "std::__future_base::_Deferred_state"];
const WORD: usize = 8;

/// The function of a `std::thread` whose start routine is called `routine`; `None` if it is no
/// such thread.
pub(super) fn function(
    symbolizer: &Symbolizer,
    start: &ThreadStart<'_>,
    routine: &str,
) -> Option<ThreadFunction> {
    if routine.contains("::__thread_proxy") {
        return libcxx(symbolizer, start, routine);
    }
    let state = class_of(symbolizer, start.words.first()?)?;
    if let Some(callable) = arguments(&state, BOOST_DATA).first() {
        // What `boost::bind` makes: result, function, arguments.
        let bound = arguments(callable, "boost::_bi::bind_t");
        let callable = bound.get(1).unwrap_or(callable);
        return named(symbolizer, callable, &[], None, ThreadKind::Cpp);
    }
    let types = arguments(&state, "std::tuple");
    let callable = *types.first()?;
    let is_async = ASYNC_STATES.iter().find(|name| callable.contains(*name));
    if let Some(name) = is_async {
        let invoker = arguments(callable, name);
        let inner = invoker.first().map(|invoker| arguments(invoker, "std::tuple"));
        let callable = inner.as_ref().and_then(|types| types.first())?;
        return named(symbolizer, callable, &start.inner_words, None, ThreadKind::CppAsync);
    }
    // Behind the pointer to the virtual table.
    let place = offset_of_first(&types, WORD).map(|offset| offset / WORD);
    let words = start.words.get(1..).unwrap_or_default();
    let place = place.map(|place| place - 1);
    // Of `(&Class::member, object)`, the object comes first in memory.
    let member = virtual_member(symbolizer, &types, words.get(1), &start.inner_words);
    member.or_else(|| named(symbolizer, callable, words, place, ThreadKind::Cpp))
}

/// The function that a pointer to a virtual member means: its place in the table of the object
/// that it is called on.
fn virtual_member(
    symbolizer: &Symbolizer,
    types: &[&str],
    pointer: Option<&Word<'_>>,
    object: &[Word<'_>],
) -> Option<ThreadFunction> {
    const LARGEST_TABLE: u64 = 1 << 16;
    let [callable, class] = types else { return None };
    let pointer = pointer?.avma;
    // Odd: one more than the offset in the table; even: the address of a function.
    let is_virtual = pointer % 2 == 1 && pointer < LARGEST_TABLE;
    if !is_virtual || !callable.contains("::*") || !class.ends_with('*') {
        return None;
    }
    let (file, table) = object.first()?.file?;
    let svma = symbolizer.image(file)?.pointer(table.wrapping_add(pointer - 1))?.svma()?;
    symbolizer.pointed(Some(&Word { avma: 0, file: Some((file, svma)) }), ThreadKind::Cpp)
}

/// libc++ passes a tuple, and a routine made for it.
fn libcxx(
    symbolizer: &Symbolizer,
    start: &ThreadStart<'_>,
    routine: &str,
) -> Option<ThreadFunction> {
    let tuple = arguments(routine, "__thread_proxy");
    let tuple = tuple.iter().find_map(|argument| {
        // The library's name space has a version in it.
        let at = argument.find("tuple<")?;
        Some(arguments(&argument[at..], "tuple"))
    })?;
    let callable = tuple.get(1)?;
    let kind = if callable.contains("__async_assoc_state") {
        ThreadKind::CppAsync
    } else {
        ThreadKind::Cpp
    };
    if kind == ThreadKind::CppAsync {
        // `void (__async_assoc_state<R, __async_func<F, …>>::*)()`.
        let at = callable.find("__async_func<")?;
        let types = arguments(&callable[at..], "__async_func");
        return named(symbolizer, types.first()?, &start.inner_words, None, kind);
    }
    named(symbolizer, callable, start.words.get(1..).unwrap_or_default(), Some(0), kind)
}

/// The class of the state object that begins with `word`, the pointer to its virtual table: by its
/// type information, which is there without symbols too, or else by the name of its `_M_run`.
fn class_of(symbolizer: &Symbolizer, word: &Word<'_>) -> Option<String> {
    let (object, vtable) = word.file?;
    let run = || {
        // Two destructors come before it.
        let run = symbolizer.image(object)?.pointer(vtable.wrapping_add(16))?.svma()?;
        let location = symbolizer.locate(object, run).ok()??;
        location.outermost()?.function.clone()
    };
    let known = |name: String| {
        let at = name.find(STATE).or_else(|| name.find(BOOST_DATA))?;
        Some(name[at..].to_owned())
    };
    type_name(symbolizer, word).and_then(known).or_else(|| run().and_then(known))
}

/// The name of the type that the virtual table at `word` belongs to, by its type information.
pub(super) fn type_name(symbolizer: &Symbolizer, word: &Word<'_>) -> Option<String> {
    let (object, vtable) = word.file?;
    let image = symbolizer.image(object)?;
    // In front of the table is the type's description: a pointer to a table of its own, and a name.
    match image.pointer(vtable.checked_sub(8)?)? {
        Pointer::Svma(svma) => {
            let name = image.text(image.pointer(svma.checked_add(8)?)?.svma()?)?;
            Some(demangle(&format!("_ZTS{}", name.trim_start_matches('*'))).into_owned())
        }
        Pointer::Symbol(name, 0) => Some(demangle(&name).into_owned()),
        Pointer::Symbol(..) => None,
    }
}

/// The function that the type `callable` names, or that a pointer of this type among `words`
/// points to; at `place`, if that is known.
fn named(
    symbolizer: &Symbolizer,
    callable: &str,
    words: &[Word<'_>],
    place: Option<usize>,
    kind: ThreadKind,
) -> Option<ThreadFunction> {
    let by_type =
        |name: String| ThreadFunction { name, kind, wrapper: None, code: None, source: None };
    let is_function =
        callable.starts_with("std::function<") || callable.starts_with("std::__1::function<");
    let is_pointer = ["(*", "(&", "::*"].iter().any(|sign| callable.contains(sign));
    if !is_function && !is_pointer {
        let is_lambda = callable.ends_with('}') || callable.contains("'lambda");
        let name = if is_lambda { callable.into() } else { format!("{callable}::operator()") };
        return Some(by_type(name));
    }
    let code = |word: &Word<'_>| symbolizer.pointed(Some(word), kind);
    if is_function {
        // `std::_Function_handler<void (), F>::_M_invoke` calls what is inside.
        let inside = words.iter().filter_map(code).find_map(|found| {
            let types = arguments(&found.name, "std::_Function_handler");
            types.get(1).map(|inside| (*inside).to_owned())
        });
        // libc++ keeps an object of a class of its own: `std::__1::__function::__func<F, …>`.
        let inside = inside.or_else(|| {
            let types = words.iter().filter_map(|word| type_name(symbolizer, word));
            types.into_iter().find_map(|name| {
                arguments(&name, "::__function::__func").first().map(|inside| (*inside).to_owned())
            })
        });
        let inside = inside.filter(|inside| !inside.contains("function<"));
        // Without symbols, what calls it is at least not the same for two: it comes last, behind
        // the room for what is called and what copies that.
        let invoker = || words.get(3).filter(|_| place == Some(0)).and_then(code);
        return match inside {
            Some(inside) => named(symbolizer, &inside, words, None, kind),
            None => Some(invoker().unwrap_or_else(|| by_type(callable.to_owned()))),
        };
    }
    let found = match place {
        Some(place) => words.get(place).and_then(code),
        None => only_one(callable, words.iter().filter_map(code).collect()),
    };
    // A pointer to a virtual member is an offset: its class is all that is known.
    Some(found.unwrap_or_else(|| by_type(callable.to_owned())))
}

/// The one among `found` that can be meant by a pointer of type `callable`.
fn only_one(callable: &str, mut found: Vec<ThreadFunction>) -> Option<ThreadFunction> {
    found.retain(|function| !function.name.starts_with("std::"));
    found.dedup_by(|a, b| a.code == b.code);
    if found.len() > 1 {
        let wanted = parameters(callable);
        found.retain(|function| parameters(&function.name) == wanted);
    }
    if found.len() == 1 { found.pop() } else { None }
}
