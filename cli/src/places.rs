//! Where in the source an address of the recording is.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use chase_analyzer::recorder::reader::mapping_path;
use chase_analyzer::{CodeAddress, Image, ObjectRow, ThreadRow};
use chase_symbols::{DebugDirs, Frame, ObjectKey, PerfMap, Symbolizer, ThreadFunction, shorten};
use serde::Serialize;

/// The files that addresses are in.
#[derive(Clone, Copy)]
pub(crate) struct Files<'r> {
    /// By number of the object.
    pub(crate) objects: &'r [ObjectRow],
    /// By number of the process.
    pub(crate) images: &'r [Image],
    pub(crate) threads: &'r [ThreadRow],
}

/// All that a thread's function depends on: threads alike in this have the same.
pub(crate) type Fingerprint = (usize, Vec<(usize, u64)>, String);

/// Start routines of the program's own that run what they are given, each with the place of that in what the threads were given.
pub(crate) type Wrappers = HashMap<ThreadFunction, usize>;

/// Finds source places, and remembers what it could not find.
pub(crate) struct Places {
    pub(crate) symbolizer: Rc<Symbolizer>,
    missing: RefCell<BTreeMap<String, String>>,
    /// What was found: thousands of threads start at a few places.
    known: RefCell<HashMap<(usize, CodeAddress, AddressKind), Place>>,
    pub(crate) thread_functions: RefCell<HashMap<Fingerprint, Option<ThreadFunction>>>,
    pub(crate) wrappers: OnceCell<Wrappers>,
    /// Names of generated code by process.
    generated: RefCell<HashMap<usize, Option<PerfMap>>>,
    /// Files that were mapped without the dynamic linker, by process and path.
    mapped: RefCell<HashMap<(usize, String), Option<ObjectKey>>>,
}

/// A place in the code. What is not known is left out.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Place {
    /// Address in the process.
    pub(crate) avma: u64,
    /// Path of the object.
    pub(crate) object: Option<String>,
    /// Address in the object's file.
    pub(crate) svma: Option<u64>,
    /// Demangled name of the function.
    pub(crate) function: Option<String>,
    /// Source file.
    pub(crate) file: Option<String>,
    /// Line in it.
    pub(crate) line: Option<u32>,
    /// Functions inlined there, innermost first, without `function`.
    pub(crate) inlined: Vec<Inlined>,
    /// Where the function begins, or what is known instead, svma; to tell functions without a name apart.
    #[serde(skip)]
    pub(crate) start: Option<u64>,
}

/// A function whose code is part of another one's.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Inlined {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
}

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AddressKind {
    Function,
    ReturnAddress,
}

impl Places {
    pub(crate) fn new(debug_dirs: Vec<PathBuf>) -> Self {
        Self::with(Rc::new(Symbolizer::new(DebugDirs::new(debug_dirs))))
    }

    /// For another look at a run, whose objects may have other numbers: files that were opened are kept.
    pub(crate) fn again(&self) -> Self {
        Self::with(Rc::clone(&self.symbolizer))
    }

    fn with(symbolizer: Rc<Symbolizer>) -> Self {
        Self {
            symbolizer,
            missing: RefCell::default(),
            known: RefCell::default(),
            thread_functions: RefCell::default(),
            wrappers: OnceCell::new(),
            generated: RefCell::default(),
            mapped: RefCell::default(),
        }
    }

    /// What is at `address` of a thread of process `process`.
    pub(crate) fn find(
        &self,
        files: Files<'_>,
        process: usize,
        address: &CodeAddress,
        kind: AddressKind,
    ) -> Place {
        let key = (process, *address, kind);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let place = self.look_up(files, process, address, kind);
        self.known.borrow_mut().insert(key, place.clone());
        place
    }

    fn look_up(
        &self,
        files: Files<'_>,
        process: usize,
        address: &CodeAddress,
        kind: AddressKind,
    ) -> Place {
        let object = address.object.and_then(|number| files.objects.get(number as usize));
        let mut place = Place {
            avma: address.avma,
            svma: address.svma,
            object: object.map(|object| object.path.clone()),
            ..Place::default()
        };
        let (Some(object), Some(svma)) = (object, address.svma) else {
            match self.mapped(files, process, address.avma) {
                Some((path, key, svma)) => {
                    place.object = Some(path);
                    if let Ok(Some(location)) = self.symbolizer.locate(&key, svma) {
                        place.fill(location.frames);
                    }
                    place.start = self.symbolizer.function_start(&key, svma).or(Some(svma));
                }
                None => place.function = self.generated(files, process, address.avma),
            }
            return place;
        };
        let key = key(object, files.images.get(process));
        let found = match kind {
            AddressKind::Function => self.symbolizer.locate(&key, svma),
            AddressKind::ReturnAddress => self.symbolizer.locate_call(&key, svma),
        };
        match found {
            Ok(Some(location)) => place.fill(location.frames),
            Ok(None) => {}
            Err(error) => self.miss(object, || error.to_string()),
        }
        if place.function.is_none() {
            place.start = self.symbolizer.function_start(&key, svma).or(Some(svma));
        }
        if place.line.is_none() {
            self.miss_lines(object, &key);
        }
        place
    }

    /// What is at an address in a file of which nobody told but the kernel: a static program, or what was mapped without the
    /// dynamic linker.
    fn mapped(
        &self,
        files: Files<'_>,
        process: usize,
        avma: u64,
    ) -> Option<(String, ObjectKey, u64)> {
        let image = files.images.get(process)?;
        let mappings = image.syscalls.as_ref()?.mappings();
        let mapping = mappings.filter(|one| (one.start..one.end).contains(&avma)).last()?;
        let path = mapping_path(&mapping).into_owned();
        if !path.starts_with('/') {
            return None;
        }
        let mut known = self.mapped.borrow_mut();
        let key = known
            .entry((process, path.clone()))
            .or_insert_with(|| ObjectKey::of_file(Path::new(&path), start_of(image)?));
        let key = key.as_ref()?;
        let svma =
            self.symbolizer.svma_at(key, mapping.offset.checked_add(avma - mapping.start)?)?;
        Some((path, key.clone(), svma))
    }

    /// The function at an address in no file, if who generated it has listed it.
    fn generated(&self, files: Files<'_>, process: usize, avma: u64) -> Option<String> {
        let mut known = self.generated.borrow_mut();
        let list = known.entry(process).or_insert_with(|| {
            let mut path = files.images.get(process)?.path.clone().into_os_string();
            path.push(".perf-map");
            PerfMap::read(Path::new(&path)).ok()
        });
        list.as_ref()?.name(avma).map(str::to_owned)
    }

    /// Notes that a line of `object` was asked for and is not known.
    fn miss_lines(&self, object: &ObjectRow, key: &ObjectKey) {
        let status = self.symbolizer.status(key);
        if status.debug_info.is_some() {
            // It knows no line of this place: code that no source was written for.
            return;
        }
        self.miss(object, || match status.refused.first() {
            Some(refused) => refused.to_string(),
            None => format!("{}: no debug information", object.path),
        });
    }

    fn miss(&self, object: &ObjectRow, why: impl FnOnce() -> String) {
        self.missing.borrow_mut().entry(object.path.clone()).or_insert_with(why);
    }

    /// Why there are no lines for objects that places were asked of, by path.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.missing.borrow().values().cloned().collect()
    }
}

impl Place {
    fn fill(&mut self, mut frames: Vec<Frame>) {
        if let Some(frame) = frames.pop() {
            (self.function, self.file, self.line) = (frame.function, frame.file, frame.line);
        }
        let inlined =
            |frame: Frame| Inlined { function: frame.function, file: frame.file, line: frame.line };
        self.inlined = frames.into_iter().map(inlined).collect();
    }

    /// The function's name; of one that has none, its object and where it begins there; if not even that is known, where in the
    /// object this is. `None` for code in no file.
    pub(crate) fn function_or_start(&self, names_object: &str) -> Option<String> {
        let start = || Some(format!("{names_object}+{:#x}", self.start?));
        self.function.clone().or_else(start)
    }

    /// For a table: as [`function_or_start`](Self::function_or_start), shortened if that can be.
    pub(crate) fn function_in_short(&self, names_object: &str) -> String {
        match &self.function {
            // Its name is what a compiler in the process made up, in no language that could be shortened.
            Some(name) if self.object.is_none() => name.clone(),
            Some(name) => shorten(name).into_owned(),
            None => self.function_or_start(names_object).unwrap_or_else(|| "(no name)".to_owned()),
        }
    }

    /// Whether a line of its source is known.
    pub(crate) fn is_known(&self) -> bool {
        self.file.is_some()
    }

    /// Whether all of it is source of a library, as far as is known.
    pub(crate) fn is_of_library(&self) -> bool {
        let (_, file, _) = self.nearest();
        file.is_some_and(is_of_library)
    }

    /// The function that is named, with file and line. Code of the program may be part of a function of a library, such as a closure of
    /// one that calls it: what is said then is where it is in the program.
    fn nearest(&self) -> (Option<&str>, Option<&str>, Option<u32>) {
        let of_program = |frame: &&Inlined| {
            frame.function.is_some()
                && frame.file.as_deref().is_some_and(|file| !is_of_library(file))
        };
        let inlined = || self.inlined.iter().find(of_program);
        match self.file.as_deref().filter(|file| is_of_library(file)).and_then(|_| inlined()) {
            Some(frame) => (frame.function.as_deref(), frame.file.as_deref(), frame.line),
            None => (self.function.as_deref(), self.file.as_deref(), self.line),
        }
    }

    /// For a table: `worker pool.c:42`, or what comes nearest to it.
    pub(crate) fn short(&self, names_object: &str) -> String {
        let (function, file, line) = self.nearest();
        let function = function.map(shorten);
        let line = match (file, line) {
            (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
            _ => String::new(),
        };
        match (function, self.svma) {
            (Some(function), _) if line.is_empty() => format!("{function} {names_object}"),
            (Some(function), _) => format!("{function} {line}"),
            (None, Some(svma)) => format!("{names_object}+{svma:#x}"),
            (None, None) => format!("{:#x}", self.avma),
        }
    }
}

/// Whether a source file is one of a library that is compiled into the program: Rust's, of C++, or a package of `cargo`.
pub(crate) fn is_of_library(file: &str) -> bool {
    const LIBRARIES: &[&str] = &[
        "/lib/rustlib/src/rust/library/",
        "/.cargo/registry/src/",
        "/.cargo/git/checkouts/",
        "/include/c++/",
    ];
    let is_rusts = file.starts_with("/rustc/") && file.contains("/library/");
    is_rusts || LIBRARIES.iter().any(|part| file.contains(part))
}

/// The object as the symbolizer knows it.
pub(crate) fn key(object: &ObjectRow, image: Option<&Image>) -> ObjectKey {
    let mut path = PathBuf::from(&object.path);
    let mut recorded = None;
    if let Some(image) = image {
        let directory = image.recording.meta_value("directory").unwrap_or_default();
        if path.is_relative() && object.path.contains('/') && !directory.is_empty() {
            path = Path::new(&*directory).join(path);
        }
        // Files with a build id are told by that: they are the same in all processes.
        if object.build_id.is_empty() {
            recorded = start_of(image);
        }
    }
    ObjectKey { path, build_id: bytes(&object.build_id), recorded }
}

/// When it was recorded.
fn start_of(image: &Image) -> Option<SystemTime> {
    let start = Duration::from_nanos(image.recording.header().clock_start.realtime_ns);
    SystemTime::UNIX_EPOCH.checked_add(start)
}

/// The bytes that `hex` digits stand for.
fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .filter_map(|pair| std::str::from_utf8(pair).ok())
        .filter_map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closure_in_a_function_of_a_library_is_at_its_place_in_the_program() {
        let std =
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src/sys/backtrace.rs";
        let inlined = |function: &str, file: &str, line| Inlined {
            function: Some(function.to_owned()),
            file: Some(file.to_owned()),
            line: Some(line),
        };
        let mut place = Place {
            function: Some("__rust_begin_short_backtrace".to_owned()),
            file: Some(std.to_owned()),
            line: Some(166),
            inlined: vec![
                inlined("unlock", "/home/me/.cargo/registry/src/index/lock-1.0/src/lib.rs", 3),
                inlined("app::work", "/home/me/app/src/main.rs", 12),
                inlined("app::run", "/home/me/app/src/main.rs", 40),
            ],
            ..Place::default()
        };
        assert_eq!(place.short("app"), "app::work main.rs:12");
        assert!(!place.is_of_library());
        place.inlined.truncate(1);
        assert_eq!(place.short("app"), "__rust_begin_short_backtrace backtrace.rs:166");
        assert!(place.is_of_library());
        // What is not of a library is named as a whole.
        place.file = Some("/home/me/app/src/main.rs".to_owned());
        assert_eq!(place.short("app"), "__rust_begin_short_backtrace main.rs:166");
    }

    #[test]
    fn functions_without_a_name_are_called_by_their_place() {
        let mut place = Place { avma: 0x7000_1234, svma: Some(0x1234), ..Place::default() };
        assert_eq!(place.function_or_start("libx.so.1"), None);
        place.start = Some(0x1230);
        assert_eq!(place.function_or_start("libx.so.1").as_deref(), Some("libx.so.1+0x1230"));
        place.function = Some("f".to_owned());
        assert_eq!(place.function_or_start("libx.so.1").as_deref(), Some("f"));
    }
}
