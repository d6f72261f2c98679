//! What the tests see of a recording. All knowledge of the reader's and the analyzer's interfaces
//! is in `load.rs`.

use std::collections::BTreeMap;

pub use chase_recorder::layout::Unseen;

/// All recordings of a run.
#[derive(Debug)]
pub struct Recording {
    /// One for each program image that ran.
    pub processes: Vec<Process>,
    /// Space that the files take on disk.
    pub disk_bytes: u64,
}

/// One recording.
#[derive(Debug)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent_pid: u32,
    /// When the recording of this image began.
    pub start_ticks: u64,
    /// Whether it is the child of a fork, and not an image that exec started.
    pub forked: bool,
    /// File name of the executable.
    pub executable: String,
    /// `END_*`, and the exit status that goes with it.
    pub end: (u32, i32),
    /// `STOP_*`.
    pub stop_reason: u32,
    /// What was not seen.
    pub unseen: Unseen,
    /// Calls by importer, provider and API.
    pub apis: Vec<Api>,
    /// Calls of an API made directly inside of calls of another one, by the names of both; that of the caller
    /// is empty outside of all library calls.
    pub callers: BTreeMap<(String, String), u64>,
    /// What the analyzer says of APIs, by name of the library and of the API.
    pub figures: Vec<(String, String, Figures)>,
    /// Calls, at most, that it made without crediting them, since it was killed.
    pub latest_calls: u64,
    /// Self time by name of the library and of the API, as the analyzer has it.
    pub self_ns: Vec<(String, String, f64)>,
    /// Threads, by number.
    pub threads: Vec<Thread>,
    /// Every hooked import.
    pub bindings: Vec<Binding>,
    /// Imports that are not hooked, by importer and `SkipReason`.
    pub skipped: Vec<(String, [u32; 16])>,
}

/// The calls of one API by one object, in all threads, counted over the contexts in the file.
#[derive(Clone, Debug)]
pub struct Api {
    /// File name of the calling object.
    pub importer: String,
    /// File name of the object with the function.
    pub provider: String,
    /// Symbol name.
    pub name: String,
    /// Symbol version, or empty.
    pub version: String,
    /// Calls begun, of those that were seen.
    pub calls: u64,
    /// Calls that did not return, but were left.
    pub unwound: u64,
    /// Calls that neither returned nor were left.
    pub open: u64,
}

/// The calls of an API, as the analyzer has them.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Calls begun.
    pub calls: u64,
    /// Those that were timed.
    pub timed: u64,
    /// Whether some of them may be missing.
    pub estimated: bool,
    /// How many of the latest are missing, or too many, at most.
    pub ci95: u64,
}

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Kernel thread id.
    pub tid: u32,
    /// Whether its creation was seen.
    pub created: bool,
    /// Whether its end was seen.
    pub ended: bool,
    /// Whether its start routine is known.
    pub has_start_routine: bool,
    /// From start to end.
    pub lifetime_ns: f64,
    /// Lifetime less the outermost library calls.
    pub application_ns: f64,
    /// What the hook itself took.
    pub own_cost_ns: f64,
    /// Calls by handlers that came while the hook changed what is shared: of which function is not noted.
    pub lost_calls: u64,
    /// Time that is in two parts at once, as of coroutines.
    pub overlap_ns: f64,
    /// Half the width of the 95 % confidence interval of all self times; 0 where all calls were timed.
    pub ci95_ns: f64,
    /// Self time by API name.
    pub self_ns: Vec<(String, f64)>,
    /// What a sample cost its caller, ticks, and what that is where caches have all that it needs.
    pub sample_cost: Option<(f64, f64)>,
}

/// One hooked import. Paths are as the dynamic linker has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// Path of the importing object.
    pub importer: String,
    /// Symbol name.
    pub symbol: String,
    /// Symbol version, or empty.
    pub version: String,
    /// Path of the object with the function.
    pub provider: String,
}

impl Recording {
    /// The recording of a run that has only one.
    ///
    /// # Panics
    ///
    /// If there are more, or none.
    #[must_use]
    pub fn only(&self) -> &Process {
        let found: Vec<_> = self.processes.iter().map(|p| (p.pid, &p.executable)).collect();
        assert!(found.len() == 1, "one recording expected, found {found:?}");
        &self.processes[0]
    }

    /// Recordings of one executable, by file name.
    #[must_use]
    pub fn of(&self, executable: &str) -> Vec<&Process> {
        self.processes.iter().filter(|process| process.executable == executable).collect()
    }

    /// Calls in all processes. See [`Process::calls`].
    #[must_use]
    pub fn calls(&self, provider: &str, api: &str) -> u64 {
        self.processes.iter().map(|process| process.calls(provider, api)).sum()
    }
}

/// Whether an object is meant by the start of a file name. Until glibc 2.34, parts of the C library were objects of their own.
fn is_named(object: &str, start: &str) -> bool {
    const PARTS: [&str; 3] = ["libpthread.so", "libdl.so", "librt.so"];
    let is_part = start == "libc.so" && PARTS.iter().any(|part| object.starts_with(part));
    is_part || object.starts_with(start)
}

impl Process {
    /// What was recorded of an API, by caller. Objects are given by the start of their file name.
    pub fn of(&self, provider: &str, api: &str) -> impl Iterator<Item = &Api> {
        self.apis.iter().filter(move |a| a.name == api && is_named(&a.provider, provider))
    }

    /// Calls of an API from all objects.
    #[must_use]
    pub fn calls(&self, provider: &str, api: &str) -> u64 {
        self.of(provider, api).map(|a| a.calls).sum()
    }

    /// Calls of an API from one object.
    #[must_use]
    pub fn calls_from(&self, importer: &str, provider: &str, api: &str) -> u64 {
        self.of(provider, api).filter(|a| a.importer.starts_with(importer)).map(|a| a.calls).sum()
    }

    /// What the analyzer says of an API.
    ///
    /// # Panics
    ///
    /// If it was not called.
    #[must_use]
    pub fn figures(&self, provider: &str, api: &str) -> Figures {
        let found = self.figures.iter().find(|(p, a, _)| a == api && is_named(p, provider));
        found.unwrap_or_else(|| panic!("{provider} {api} was not called")).2
    }

    /// Calls of an API that were left by other ways than a return.
    #[must_use]
    pub fn unwound(&self, provider: &str, api: &str) -> u64 {
        self.of(provider, api).map(|a| a.unwound).sum()
    }

    /// Time in an API, without the calls made inside and without the hook's own.
    #[must_use]
    pub fn self_ns(&self, provider: &str, api: &str) -> f64 {
        let rows = self.self_ns.iter();
        rows.filter(|(p, a, _)| a == api && is_named(p, provider)).map(|(.., ns)| ns).sum()
    }

    /// The threads whose creation was seen.
    #[must_use]
    pub fn created_threads(&self) -> usize {
        self.threads.iter().filter(|thread| thread.created).count()
    }

    /// Holds numbers of calls against `(provider, API, calls)`; shows all that differ.
    ///
    /// # Panics
    ///
    /// If any differs.
    pub fn expect(&self, wanted: &[(&str, &str, u64)]) {
        self.hold("calls", wanted, |provider, api| self.calls(provider, api));
    }

    /// As [`Process::expect`], for calls that were left without a return.
    ///
    /// # Panics
    ///
    /// If any differs.
    pub fn expect_unwound(&self, wanted: &[(&str, &str, u64)]) {
        self.hold("unwound calls", wanted, |provider, api| self.unwound(provider, api));
    }

    /// Who called an API, with the number of calls, by name; the empty one stands for the application.
    #[must_use]
    pub fn callers(&self, api: &str) -> Vec<(&str, u64)> {
        let of_api = self.callers.iter().filter(|((_, called), _)| called == api);
        of_api.map(|((caller, _), calls)| (caller.as_str(), *calls)).collect()
    }

    /// Holds that each call into `provider` either returned or is known to have been left.
    ///
    /// # Panics
    ///
    /// If one is still open.
    pub fn expect_nothing_open(&self, provider: &str) {
        let of_provider = self.apis.iter().filter(|api| api.provider.starts_with(provider));
        let open: Vec<_> = of_provider.filter(|api| api.open > 0).collect();
        assert!(open.is_empty(), "calls that never ended: {open:#?}");
    }

    fn hold(&self, what: &str, wanted: &[(&str, &str, u64)], found: impl Fn(&str, &str) -> u64) {
        let differing: Vec<String> = wanted
            .iter()
            .map(|&(provider, api, expected)| (provider, api, expected, found(provider, api)))
            .filter(|&(.., expected, found)| found != expected)
            .map(|(provider, api, expected, found)| {
                format!("  {provider} {api}: expected {expected}, found {found}")
            })
            .collect();
        assert!(
            differing.is_empty(),
            "{what} differ in {} (pid {}):\n{}\nnot seen: {:?}",
            self.executable,
            self.pid,
            differing.join("\n"),
            self.unseen
        );
    }
}
