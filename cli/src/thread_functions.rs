//! Which function of the program a thread runs.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use chase_analyzer::{CodeAddress, ThreadOrigin, ThreadRow};
use chase_symbols::{ObjectKey, ThreadFunction, ThreadKind, ThreadStart, Word, shorten};
use serde::Serialize;

use crate::places::{
    AddressKind, Files, Fingerprint, Places, Wrappers, file_name, is_of_library, key,
};

/// A thread's function as JSON has it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FunctionField {
    name: String,
    kind: &'static str,
    file: Option<String>,
    line: Option<u32>,
}

impl Places {
    /// The function of the program that a thread runs. `None` for the main thread, and for one
    /// whose creation was not seen.
    pub(crate) fn thread_function(
        &self,
        files: Files<'_>,
        row: &ThreadRow,
    ) -> Option<ThreadFunction> {
        let fingerprint = fingerprint(row);
        if let Some(found) = self.thread_functions.borrow().get(&fingerprint) {
            return found.clone();
        }
        let found = self.find_thread_function(files, row);
        self.thread_functions.borrow_mut().insert(fingerprint, found.clone());
        found
    }

    fn find_thread_function(&self, files: Files<'_>, row: &ThreadRow) -> Option<ThreadFunction> {
        let keys = keys(files, row);
        let start = thread_start(row, &keys);
        let mut found = self.symbolizer.thread_function(&start)?;
        let wrappers = self.wrappers.get_or_init(|| self.find_wrappers(files));
        if let Some(&place) = wrappers.get(&found) {
            let mut given = self.symbolizer.given(&start, &found).into_iter();
            if let Some(given) = given.find(|given| given.place == place) {
                found = given.to(&found);
            }
        }
        if let (None, Some((object, svma))) = (&found.source, &found.code)
            && let Some((number, _)) = keys.iter().find(|(_, key)| *key == object)
        {
            // It notes why there is no line.
            let address = CodeAddress { avma: 0, object: Some(*number), svma: Some(*svma) };
            let _ = self.find(files, row.process, &address, AddressKind::Function);
        }
        Some(found)
    }

    /// The routines of the program's own whose threads were all given a function, at one place, and not all the same.
    fn find_wrappers(&self, files: Files<'_>) -> Wrappers {
        let mut seen = HashSet::new();
        // By place, the functions that there are in all threads so far.
        let mut given: HashMap<ThreadFunction, BTreeMap<usize, HashSet<String>>> = HashMap::new();
        for row in files.threads.iter().filter(|row| row.origin == ThreadOrigin::Created) {
            if !seen.insert(fingerprint(row)) {
                continue;
            }
            let keys = keys(files, row);
            let start = thread_start(row, &keys);
            let Some(routine) = self.symbolizer.thread_function(&start) else { continue };
            let here = self.symbolizer.given(&start, &routine);
            let here = here.iter().map(|given| (given.place, given.name().to_owned()));
            let here: BTreeMap<_, _> = here.collect();
            match given.entry(routine) {
                Entry::Vacant(first) => {
                    let single = |(place, name)| (place, HashSet::from([name]));
                    first.insert(here.into_iter().map(single).collect());
                }
                Entry::Occupied(mut others) => others.get_mut().retain(|place, names| {
                    here.get(place).is_some_and(|name| {
                        names.insert(name.clone());
                        true
                    })
                }),
            }
        }
        let differing = given.into_iter().filter_map(|(routine, places)| {
            let (place, _) = places.into_iter().find(|(_, names)| names.len() > 1)?;
            Some((routine, place))
        });
        differing.collect()
    }

    /// Where the program's own code had the thread created, as a return address; the call in the
    /// runtime if no more is known.
    pub(crate) fn creation_site(&self, files: Files<'_>, row: &ThreadRow) -> Option<CodeAddress> {
        let keys = keys(files, row);
        let site = thread_start(row, &keys).user_site();
        let stack = || row.creation.stack.iter();
        let own = site.and_then(|site| stack().find(|address| address.avma == site.avma).copied());
        own.or(row.creation_site)
    }
}

/// The objects that a thread's addresses are in.
fn keys(files: Files<'_>, row: &ThreadRow) -> BTreeMap<u32, ObjectKey> {
    let mut keys = BTreeMap::new();
    for number in all_addresses(row).filter_map(|(_, address)| address.object) {
        if let Some(object) = files.objects.get(number as usize) {
            let image = files.images.get(row.process);
            keys.entry(number).or_insert_with(|| key(object, image));
        }
    }
    keys
}

fn thread_start<'a>(row: &'a ThreadRow, keys: &'a BTreeMap<u32, ObjectKey>) -> ThreadStart<'a> {
    let origin = &row.creation;
    let word = |address: &CodeAddress| Word {
        avma: address.avma,
        file: address.object.and_then(|number| keys.get(&number)).zip(address.svma),
    };
    let words = |list: &[CodeAddress]| list.iter().map(word).collect();
    ThreadStart {
        routine: row.start_routine.as_ref().map(word),
        words: words(&origin.words),
        inner_words: words(&origin.inner_words),
        stack: words(&origin.stack),
        python_function: origin.python_function.as_deref(),
        name: &row.name,
        is_found: row.origin == ThreadOrigin::Found,
    }
}

/// Its name, shortened.
pub(crate) fn short_name(function: &ThreadFunction) -> String {
    let name = match function.kind {
        // These are no mangled names.
        ThreadKind::Python | ThreadKind::Jvm | ThreadKind::Go => return function.name.clone(),
        _ => shorten(&function.name),
    };
    match &function.wrapper {
        Some(wrapper) => format!("{}({name})", shorten(wrapper)),
        None => name.into_owned(),
    }
}

/// For a table: `worker pool.c:42`, or what comes nearest to it.
pub(crate) fn short(function: &ThreadFunction) -> String {
    let name = short_name(function);
    // Where a library calls a closure says nothing of it.
    let source = function.source.as_ref().filter(|(file, _)| !is_of_library(file));
    match (source, &function.code) {
        (Some((file, line)), _) => format!("{name} {}:{line}", file_name(file)),
        (None, Some((object, _)))
            if function.kind == ThreadKind::Plain && !name.contains("+0x") =>
        {
            format!("{name} {}", file_name(&object.path.to_string_lossy()))
        }
        _ if function.kind == ThreadKind::Plain => name,
        _ => format!("{name} ({})", kind_name(function.kind)),
    }
}

/// For JSON and CSV.
pub(crate) fn field(function: ThreadFunction) -> FunctionField {
    let (file, line) = function.source.unzip();
    let name = match function.wrapper {
        Some(wrapper) => format!("{wrapper}({})", function.name),
        None => function.name,
    };
    FunctionField { name, kind: kind_name(function.kind), file, line }
}

/// What people call it.
pub(crate) fn kind_name(kind: ThreadKind) -> &'static str {
    match kind {
        ThreadKind::Plain => "pthread",
        ThreadKind::Cpp => "std::thread",
        ThreadKind::CppAsync => "std::async",
        ThreadKind::Rust => "Rust",
        ThreadKind::Python => "Python",
        ThreadKind::OpenMp => "OpenMP",
        ThreadKind::Glib => "GLib",
        ThreadKind::Apr => "APR",
        ThreadKind::Nspr => "NSPR",
        ThreadKind::Jvm => "JVM",
        ThreadKind::Go => "Go",
    }
}

fn fingerprint(row: &ThreadRow) -> Fingerprint {
    // Addresses on the heap differ between threads, and name nothing.
    let in_files = all_addresses(row).filter(|(_, address)| address.object.is_some());
    let python = row.creation.python_function.as_deref();
    (
        row.process,
        in_files.map(|(place, address)| (place, address.avma)).collect(),
        python.unwrap_or(&row.name).to_owned(),
    )
}

/// Every address that says something of a thread, with its place.
fn all_addresses(row: &ThreadRow) -> impl Iterator<Item = (usize, &CodeAddress)> {
    let origin = &row.creation;
    let lists = [&origin.words, &origin.inner_words, &origin.stack];
    let numbered = lists.into_iter().enumerate().flat_map(|(list, addresses)| {
        addresses.iter().enumerate().map(move |(at, address)| ((list + 1) << 8 | at, address))
    });
    row.start_routine.iter().map(|address| (0, address)).chain(numbered)
}
