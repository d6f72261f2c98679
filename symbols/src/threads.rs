//! Which function of the program a thread runs.
//!
//! A thread's start routine says so itself, unless it is a language runtime's. Then the function
//! is named by what the routine was given: the object that its argument points to, of which a
//! recording keeps the first words. What they mean is known for:
//!
//! | runtime | start routine | what names the function |
//! | --- | --- | --- |
//! | libstdc++ | `execute_native_thread_routine` | the type of the state object (by its virtual table), and the pointer in it |
//! | Boost | `thread_proxy` | the type of the thread's data |
//! | libc++ | `std::__thread_proxy<…>` | the routine's own type arguments, and the pointer in the tuple |
//! | Rust | `std::sys::…::thread_start` | the trait object in the argument: its drop glue, or the code behind it |
//! | libgomp | `gomp_thread_start` | the function in the start data: the outlined region |
//! | LLVM's OpenMP | `__kmp_launch_worker` | the function that began the first parallel region |
//! | GLib | `g_thread_proxy` | the function in the thread object, or in its pool |
//! | APR | its own | the function in the thread object |
//! | NSPR | `_pt_root` | the function in the thread object |
//! | HotSpot | `thread_native_entry` | the thread's name, or the class of the thread object |
//! | Go, with C | `threadentry` | the function in the start data: the scheduler's, which runs goroutines of any function |
//! | CPython | `pythread_wrapper` | the name that the recording has |
//! | the program's own | any | the function or the class of the object in the argument, where these differ ([`Given`]) |
//!
//! A pointer in memory is taken for a function only where the type says that there is one; of
//! several candidates none is taken, unless the type tells them apart.

mod cpp;
mod given;
mod rust;
mod types;

pub use self::given::Given;
use crate::identity::ObjectKey;
use crate::symbolizer::Symbolizer;

/// A word of the process, and where it points if that is in a file.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// Its value; an address in the process if it is one.
    pub avma: u64,
    /// The object at that address, and the address in the object's file.
    pub file: Option<(&'a ObjectKey, u64)>,
}

/// What is known of a thread's creation.
#[derive(Clone, Debug, Default)]
pub struct ThreadStart<'a> {
    /// The start routine.
    pub routine: Option<Word<'a>>,
    /// What its argument pointed to; 0 for what is no address in a file.
    pub words: Vec<Word<'a>>,
    /// What the second of the words pointed to.
    pub inner_words: Vec<Word<'a>>,
    /// Return addresses of the calls that the thread was created in, innermost first.
    pub stack: Vec<Word<'a>>,
    /// What the Python interpreter says.
    pub python_function: Option<&'a str>,
    /// The thread's name.
    pub name: &'a str,
    /// Whether the words were read some time after the thread had begun. Then they are believed only of runtimes that keep what they gave to
    /// their start routines as long as the thread runs.
    pub is_found: bool,
}

/// Libraries whose functions are not the program's.
const RUNTIMES: [&str; 15] = [
    "libstdc++.so",
    "libc++.so",
    "libboost_thread.so",
    "libglib-2.0.so",
    "libapr-1.so",
    "libnspr4.so",
    "libgomp.so",
    "libomp.so",
    "libiomp5.so",
    "libjvm.so",
    "libjli.so",
    "libpthread.so",
    "libc.so",
    "libQt5Core.so",
    "libQt6Core.so",
];

/// Start routines of runtimes, which may be linked into the program.
const RUNTIME_ROUTINES: [&str; 7] = [
    "execute_native_thread_routine",
    "thread_proxy",
    "gomp_thread_start",
    "__kmp_launch_worker",
    "g_thread_proxy",
    "threadentry",
    "pythread_wrapper",
];

/// Whether an object is a runtime's library.
fn is_runtime(object: &ObjectKey) -> bool {
    let name = library_name(object);
    RUNTIMES.contains(&name) || name.starts_with("libpython")
}

impl<'a> ThreadStart<'a> {
    /// Where the program's own code had the thread created: the innermost of the calls around the
    /// creation that is not a runtime's. `None` if all of them are, or none is known.
    #[must_use]
    pub fn user_site(&self) -> Option<Word<'a>> {
        let is_user = |word: &&Word<'_>| word.file.is_some_and(|(object, _)| !is_runtime(object));
        self.stack.iter().find(is_user).copied()
    }
}

/// By what means a thread runs its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadKind {
    /// The function is the start routine itself.
    Plain,
    /// C++'s `std::thread`, or Boost's.
    Cpp,
    /// C++'s `std::async`.
    CppAsync,
    /// Rust's `std::thread`.
    Rust,
    /// Python's `threading` or `_thread`.
    Python,
    /// A worker of an OpenMP team. The function is that of its first parallel region.
    OpenMp,
    /// A thread or a thread pool of GLib.
    Glib,
    /// A thread of the Apache Portable Runtime.
    Apr,
    /// A thread of the Netscape Portable Runtime.
    Nspr,
    /// A Java virtual machine's.
    Jvm,
    /// One of those that Go's scheduler lets goroutines run on.
    Go,
}

/// The function that a thread runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadFunction {
    /// Its full name; see [`shorten`](crate::shorten()). Where no symbol tells it, `object+0x12`.
    /// Threads that run the same function have the same name; in Rust, closures of one function
    /// may share it, and differ in `code`.
    pub name: String,
    /// By what means it is run.
    pub kind: ThreadKind,
    /// The start routine of the program's own that was given this, if it is that which tells the threads of the routine apart. It
    /// may be the class of an object.
    pub wrapper: Option<String>,
    /// Where its code is, if that is known: address in the file of that object.
    pub code: Option<(ObjectKey, u64)>,
    /// Source file and line, if they are known.
    pub source: Option<(String, u32)>,
}

impl ThreadFunction {
    /// Whether it is but the start routine of a runtime: threads that run it may do anything.
    #[must_use]
    pub fn is_of_runtime(&self) -> bool {
        // An interpreter has its library in it, mostly without symbols.
        let is_python = |object: &ObjectKey| library_name(object).starts_with("python");
        let in_library =
            || self.code.as_ref().is_some_and(|(file, _)| is_runtime(file) || is_python(file));
        let name = self.name.as_str();
        let is_routine = RUNTIME_ROUTINES.contains(&name)
            || name.contains("::__thread_proxy")
            || rust::is_start(name);
        self.wrapper.is_none() && self.kind == ThreadKind::Plain && (is_routine || in_library())
    }
}

impl Symbolizer {
    /// The function that a thread runs; `None` if not even its start routine is known.
    #[must_use]
    pub fn thread_function(&self, start: &ThreadStart<'_>) -> Option<ThreadFunction> {
        if let Some(name) = start.python_function {
            let name = name.strip_prefix("__main__.").unwrap_or(name).to_owned();
            return Some(ThreadFunction {
                name,
                kind: ThreadKind::Python,
                wrapper: None,
                code: None,
                source: None,
            });
        }
        let routine = start.routine?;
        let own = self.code(routine, ThreadKind::Plain)?;
        let Some((object, _)) = routine.file else { return Some(own) };
        let library = library_name(object);
        let refined = if let Some(found) = cpp::function(self, start, &own.name) {
            Some(found)
        } else if start.is_found {
            // Others free it, or have it on a stack.
            None
        } else if rust::is_start(&own.name) || own.name.contains("+0x") {
            rust::function(self, start)
        } else {
            None
        };
        let refined = refined.or_else(|| match library {
            "libjvm.so" => Some(self.java(start, &own)),
            "libglib-2.0.so" => self.glib(start),
            // Both keep the function in the thread object: behind its pool, its handle and its data, or behind its state and its data.
            "libapr-1.so" => self.pointed(start.words.get(3), ThreadKind::Apr),
            "libnspr4.so" => self.pointed(start.words.get(2), ThreadKind::Nspr),
            _ if own.name == "g_thread_proxy" => self.glib(start),
            _ if start.is_found => None,
            "libgomp.so" => self.pointed(start.words.first(), ThreadKind::OpenMp),
            "libomp.so" | "libiomp5.so" => self.first_user(start),
            // The runtimes, linked statically.
            _ => match own.name.as_str() {
                "gomp_thread_start" => self.pointed(start.words.first(), ThreadKind::OpenMp),
                "__kmp_launch_worker" => self.first_user(start),
                _ => self.go(start),
            },
        });
        Some(refined.unwrap_or(own))
    }

    /// The function at `word`; `None` if there is no code of a known file.
    fn code(&self, word: Word<'_>, kind: ThreadKind) -> Option<ThreadFunction> {
        let (object, svma) = word.file?;
        let location = self.locate(object, svma).ok().flatten();
        let frame = location.and_then(|mut location| location.frames.pop()).unwrap_or_default();
        Some(ThreadFunction {
            name: frame.function.unwrap_or_else(|| offset_in(object, svma)),
            kind,
            wrapper: None,
            code: Some((object.clone(), svma)),
            source: frame.file.zip(frame.line),
        })
    }

    /// The function that `word` points to.
    fn pointed(&self, word: Option<&Word<'_>>, kind: ThreadKind) -> Option<ThreadFunction> {
        let word = *word?;
        let (object, svma) = word.file?;
        if self.image(object)?.is_code(svma) { self.code(word, kind) } else { None }
    }

    /// A GLib thread's function comes first in the thread object; that of a pool is GLib's own, and
    /// its data is the pool, in which the pool's function comes first.
    fn glib(&self, start: &ThreadStart<'_>) -> Option<ThreadFunction> {
        let function = self.pointed(start.words.first(), ThreadKind::Glib)?;
        let is_own = function.code.as_ref().is_some_and(|(object, _)| {
            start.routine.and_then(|routine| routine.file).is_some_and(|(own, _)| own == object)
        });
        let in_pool =
            if is_own { self.pointed(start.inner_words.first(), ThreadKind::Glib) } else { None };
        Some(in_pool.unwrap_or(function))
    }

    /// Go's threads begin in C, with their goroutine, thread-local storage, and what to go on with.
    fn go(&self, start: &ThreadStart<'_>) -> Option<ThreadFunction> {
        let function = self.pointed(start.words.get(2), ThreadKind::Go)?;
        let is_scheduler = function.name.starts_with("runtime.mstart");
        is_scheduler.then(|| ThreadFunction { name: "goroutines".to_owned(), ..function })
    }

    /// The function that made the call by which the runtime came to create the thread.
    fn first_user(&self, start: &ThreadStart<'_>) -> Option<ThreadFunction> {
        let (object, svma) = start.user_site()?.file?;
        let location = self.locate_call(object, svma).ok().flatten();
        let frame = location.and_then(|mut location| location.frames.pop()).unwrap_or_default();
        Some(ThreadFunction {
            name: frame.function.unwrap_or_else(|| offset_in(object, svma)),
            kind: ThreadKind::OpenMp,
            wrapper: None,
            code: Some((object.clone(), svma)),
            source: frame.file.zip(frame.line),
        })
    }

    /// Java's threads have names; those of the machine itself also have classes.
    fn java(&self, start: &ThreadStart<'_>, own: &ThreadFunction) -> ThreadFunction {
        let class = || {
            let (object, svma) = start.words.first()?.file?;
            let image = self.image(object)?;
            // The address in an object is behind the offset and the type.
            let name = image.vtable(svma.checked_sub(16)?)?;
            let name = crate::demangle(name);
            let class = name.strip_prefix("{vtable(").and_then(|name| name.strip_suffix(")}"));
            class.map(str::to_owned)
        };
        let executable = |name: &str| name.is_empty() || name == "java";
        let name = if executable(start.name) { class() } else { Some(without_numbers(start.name)) };
        let name = name.unwrap_or_else(|| own.name.clone());
        ThreadFunction { name, kind: ThreadKind::Jvm, wrapper: None, code: None, source: None }
    }
}

/// `libfoo.so` of `/usr/lib/libfoo.so.1.2`.
fn library_name(object: &ObjectKey) -> &str {
    let name = object.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.find(".so").map_or(name, |at| &name[..at + ".so".len()])
}

/// The name of a function without a name.
fn offset_in(object: &ObjectKey, svma: u64) -> String {
    let name = object.path.file_name().unwrap_or_default();
    format!("{}+{svma:#x}", name.display())
}

/// The threads of a pool are numbered: `GC Thread#*`. A number within a word is part of it.
fn without_numbers(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        let in_word = out.chars().next_back().is_some_and(char::is_alphabetic);
        match c {
            '0'..='9' if out.ends_with('*') => {}
            '0'..='9' if !in_word && !out.ends_with(|c: char| c.is_ascii_digit()) => out.push('*'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_names_are_one() {
        assert_eq!(without_numbers("GC Thread#12"), "GC Thread#*");
        assert_eq!(without_numbers("pool-1-thread-20"), "pool-*-thread-*");
        assert_eq!(without_numbers("C2 CompilerThre"), "C2 CompilerThre");
        assert_eq!(without_numbers("G1 Refine#0"), "G1 Refine#*");
        assert_eq!(without_numbers("worker12"), "worker12");
    }
}
