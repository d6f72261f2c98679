//! What is done to the process while its threads are stopped.

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::calls::{CALL, Caller, STACK};
use super::filters;
use super::helper::{self, ATTACH, Answer, DETACH, ORDER_LEN, Order};
use super::library::{self, Attachment, Library};
use super::memory::Memory;
use super::objects::{self, Object};
use super::places::{Places, Where};
use super::process::Process;
use super::resume::Rests;
use super::stopped::{At, Stopped};

const PAGE: u64 = 4096;
/// For the thread that does the work; longer, and the others are let go, since one may have what it waits for.
const PATIENCE: Duration = Duration::from_millis(500);
/// And then.
const LONG_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const PAUSE: Duration = Duration::from_micros(100);
/// A `syscall` instruction.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// What to do about errors.
const LIMITS: &str =
    " (its memory is limited, by ulimit -v, or its user's processes are, by ulimit -u)";
const ELSEWHERE: &str = " (it writes the recording itself: -o names a directory where it may)";
/// The words of a thread: its countdowns, its `Thread`, its context.
const WORD: u64 = 8;

/// What is found of a process before any of its threads is stopped.
pub(super) struct Prepared<'a> {
    process: &'a Process,
    memory: Memory,
    places: Places,
    functions: Functions,
    /// Where the attachment is, if the library is there; and what it has for threads that go on.
    attachment: Option<u64>,
    rests: Option<Rests>,
    /// Where the executable is.
    program: Range<u64>,
}

/// Functions of the C library that are called.
struct Functions {
    create: u64,
    detach: u64,
    open: u64,
    error: u64,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Done {
    /// What the library said.
    pub(super) said: String,
    /// How many threads there were, and in how many a call was under way.
    pub(super) threads: usize,
    pub(super) under_way: usize,
    /// How long threads were stopped.
    pub(super) stopped: Duration,
}

impl Done {
    /// Nothing was done.
    pub(super) fn nothing() -> Self {
        Self { said: String::new(), threads: 0, under_way: 0, stopped: Duration::ZERO }
    }
}

/// System calls that take back what was put into the process, in the order of what was put there.
#[derive(Default)]
struct Undo {
    steps: Vec<(libc::c_long, [u64; 6])>,
}

impl Undo {
    /// Takes all back. What a filter of system calls refuses stays.
    fn all(&mut self, caller: &Caller) {
        // (It may be traced only since the library was told to record.)
        caller.works_for_us(true);
        while let Some((number, arguments)) = self.steps.pop() {
            let _ = caller.syscall(number, arguments);
        }
    }
}

/// What is to be done.
pub(super) enum Task<'a> {
    /// The library, and its settings: `NAME=value` each.
    Attach(&'a Library, Vec<String>),
    Detach,
}

impl<'a> Prepared<'a> {
    /// # Errors
    /// If the process can't be looked into, or has not what is needed.
    pub(super) fn new(process: &'a Process) -> anyhow::Result<Self> {
        let memory =
            Memory::open(process.pid).map_err(|_| anyhow::anyhow!(process.why_not_traced()))?;
        let objects = objects::loaded(process.pid, &memory);
        let libc = objects.iter().find(|object| object.function("__libc_start_main").is_some());
        let libc = libc.context("it has no glibc that can be found")?;
        let function = |name: &str| {
            // Before version 2.34, some were in libraries of their own.
            let own =
                libc.function(name).or_else(|| objects.iter().find_map(|it| it.function(name)));
            own.with_context(|| format!("its C library has no {name}: it is too old"))
        };
        let functions = Functions {
            create: function("pthread_create")?,
            detach: function("pthread_detach")?,
            open: function("dlopen")?,
            error: function("dlerror")?,
        };
        ensure!(!objects.iter().any(is_other_version), "libchase.so of another version is in it");
        let mut places = objects.iter().filter_map(attachment_of);
        let attachment = places.find(|at| library::has_begun(&memory, *at));
        let program = std::fs::read_link(format!("/proc/{}/exe", process.pid)).unwrap_or_default();
        let program = objects.iter().find(|object| program == Path::new(&object.path));
        let program = program.map_or(0..0, |object| object.range.clone());
        let shown = attachment.and_then(|at| Attachment::read(&memory, at).ok());
        let places = Places::new(&objects, libc, &program, shown.as_ref(), &memory)?;
        let rests = shown.map(|it| it.rests);
        Ok(Self { process, memory, places, functions, attachment, rests, program })
    }

    /// What the library shows in the process, if it is there.
    pub(super) fn attachment(&self) -> anyhow::Result<Option<Attachment>> {
        self.attachment.map(|at| Attachment::read(&self.memory, at)).transpose()
    }

    /// Does it. The calling thread must be one that ends soon: it traces the process.
    pub(super) fn carry_out(&self, task: &Task) -> anyhow::Result<Done> {
        let stopped = Stopped::stop(self.process, &self.places, &self.memory, self.rests)?;
        ensure!(
            self.memory.read(self.places.syscall, SYSCALL.len()) == SYSCALL,
            "it has begun another program meanwhile: attach to that"
        );
        self.check_threads(&stopped)?;
        let filtered = stopped.threads().filter(|at| self.process.is_filtered(at.thread.tid));
        filters::check(filtered.map(|at| at.thread))
            .map_err(|why| anyhow::anyhow!(Process::why_filtered(&format!("{why:#}"))))?;
        let threads = stopped.threads().count();
        let under_way = stopped
            .threads()
            .filter(|at| at.place == Where::Waits || !self.is_in_program(at))
            .count();
        let caller = self.choose(&stopped)?;
        let (since, before) = (stopped.since, stopped.stood_before);
        let said = self.with_caller(caller, task, stopped, (threads, under_way))?;
        Ok(Done {
            said,
            threads,
            under_way,
            stopped: before + since.map_or(Duration::ZERO, |since| since.elapsed()),
        })
    }

    fn is_in_program(&self, at: &At) -> bool {
        self.program.contains(&at.registers.rip)
    }

    /// Threads that the C library has not made have no place for what the library keeps of each.
    fn check_threads(&self, stopped: &Stopped) -> anyhow::Result<()> {
        let mut pointers: Vec<u64> = stopped.threads().map(|at| at.registers.fs_base).collect();
        pointers.sort_unstable();
        let is_own = |&pointer: &u64| self.memory.words::<1>(pointer) == Some([pointer]);
        let are_own =
            pointers.iter().all(is_own) && pointers.windows(2).all(|two| two[0] != two[1]);
        ensure!(are_own, "it has threads that the C library knows nothing of");
        Ok(())
    }

    fn choose(&self, stopped: &Stopped) -> anyhow::Result<At> {
        let has_room = |at: &&At| {
            let stack = objects::mapping_of(self.process.pid, at.registers.rsp);
            stack.is_some_and(|stack| {
                at.registers.rsp - stack.start > STACK || is_main_stack(self.process.pid, at)
            })
        };
        let waits = stopped.threads().filter(|at| at.place == Where::Waits).find(has_room);
        let runs = || stopped.threads().filter(|at| at.place == Where::Runs).find(has_room);
        waits.or_else(runs).copied().context("none of its threads has room on its stack")
    }

    fn with_caller(
        &self,
        at: At,
        task: &Task,
        mut stopped: Stopped,
        counts: (usize, usize),
    ) -> anyhow::Result<String> {
        let caller = Caller::begin(at.thread, self.places.syscall)?;
        let (what, data, count) = match task {
            Task::Attach(_, settings) => {
                let (threads, under_way) = counts;
                let attached = format!("CHASE_ATTACHED={threads} threads, {under_way} in calls");
                let texts = settings.iter().chain([&attached]);
                let bytes: Vec<u8> = texts.flat_map(|text| text.bytes().chain([0])).collect();
                (ATTACH, bytes.clone(), bytes.len())
            }
            Task::Detach => {
                let words = self.attachment()?.context("chase is not in it")?.words;
                let own = |at: &At| {
                    let word = at.registers.fs_base.wrapping_add(words).wrapping_add(WORD);
                    let thread = self.memory.words::<1>(word).map_or(0, |[thread]| thread);
                    [thread, at.stopped.as_nanos() as u64]
                };
                let threads: Vec<[u64; 2]> = stopped.threads().map(own).collect();
                let bytes = threads.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
                (DETACH, bytes, threads.len())
            }
        };
        let before = self.process.threads();
        let mut undo = Undo::default();
        let answer = self.order(&caller, task, (what, &data, count), &mut undo);
        let (order_at, answer) = match answer {
            Ok(ordered) => ordered,
            Err(why) => {
                undo.all(&caller);
                // (A thread that hangs in a call is not let go in the usual way.)
                drop(caller);
                return Err(why);
            }
        };
        let Some(answer) = answer else {
            // Another thread has what it waits for, perhaps. Without the rest stopped, nothing is taken from them.
            self.memory.write(order_at + helper::CANCEL_AT, &1u64.to_le_bytes())?;
            caller.end()?;
            drop(stopped);
            let answer = self.wait_for(order_at, LONG_PATIENCE).context("it does not get on")?;
            self.wait_for_end(&before);
            return self.outcome(answer);
        };
        self.wait_for_end(&before);
        if let Answer::Done(attachment_at, _) | Answer::Refused(attachment_at, ..) = &answer {
            let attachment = Attachment::read(&self.memory, *attachment_at).ok();
            stopped.rests = attachment.map(|it| it.rests);
        }
        let taken = match &answer {
            Answer::Done(attachment_at, _) if matches!(task, Task::Detach) => {
                self.take_words(*attachment_at, &stopped)
            }
            _ => Ok(()),
        };
        undo.all(&caller);
        caller.end()?;
        taken?;
        self.outcome(answer)
    }

    /// Has a thread made that does the work; where its order is, and its answer, if it has one by now.
    fn order(
        &self,
        caller: &Caller,
        task: &Task,
        (what, data, count): (u64, &[u8], usize),
        undo: &mut Undo,
    ) -> anyhow::Result<(u64, Option<Answer>)> {
        let len = ((ORDER_LEN + data.len()) as u64).next_multiple_of(PAGE);
        let mut map = |len: u64, protection: i32| {
            let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
            let arguments = [0, len, protection as u64, flags, u64::MAX, 0];
            let place = caller.syscall(libc::SYS_mmap, arguments);
            let place = place.context("no memory in the process")?;
            undo.steps.push((libc::SYS_munmap, [place, len, 0, 0, 0, 0]));
            anyhow::Ok(place)
        };
        let code = map(PAGE, libc::PROT_READ | libc::PROT_EXEC)?;
        let order_at = map(len, libc::PROT_READ | libc::PROT_WRITE)?;
        let mut file = None;
        if let (Task::Attach(library, _), None) = (task, self.attachment) {
            file = Some(self.put_library(caller, library, order_at, undo)?);
        }
        let attachment_svma = match task {
            Task::Attach(library, _) => library.attachment_svma,
            Task::Detach => 0,
        };
        let auxiliary =
            std::fs::read(format!("/proc/{}/auxv", self.process.pid)).unwrap_or_default();
        let order = Order {
            dlopen: self.functions.open,
            dlerror: self.functions.error,
            attachment_svma,
            attachment: self.attachment.unwrap_or(0),
            what,
            path: &file.map_or_else(String::new, |fd| format!("/proc/self/fd/{fd}")),
            auxiliary: &auxiliary,
            count: count as u64,
            data,
        };
        self.memory.write(order_at, &order.bytes())?;
        const HELPER_AT: u64 = 64;
        self.memory.write(code, &CALL)?;
        self.memory.write(code + HELPER_AT, helper::code())?;
        // Its handle is put where the library's answer to nothing is.
        let handle_at = order_at + 56;
        // A thread may use all that as soon as this has begun, however it ends.
        let kept = std::mem::take(&mut undo.steps);
        let failed =
            caller.call(code, self.functions.create, [handle_at, 0, code + HELPER_AT, order_at])?;
        if failed as u32 != 0 {
            undo.steps = kept;
            bail!(
                "no thread can be made in it: {}{}",
                std::io::Error::from_raw_os_error(failed as i32),
                if failed as i32 == libc::EAGAIN { LIMITS } else { "" }
            );
        }
        let [handle] = self.memory.words(handle_at).context("its memory is gone")?;
        caller.call(code, self.functions.detach, [handle, 0, 0, 0])?;
        let answer = self.wait_for(order_at, PATIENCE);
        if answer.is_some() {
            undo.steps = kept;
        }
        Ok((order_at, answer))
    }

    fn outcome(&self, answer: Answer) -> anyhow::Result<String> {
        match answer {
            Answer::Done(_, said) => Ok(said),
            Answer::Refused(_, why, 0) => bail!("{why}"),
            Answer::Refused(_, why, errno) => {
                let may_not = [libc::EACCES, libc::EROFS, libc::EPERM].contains(&errno);
                let next = if may_not { ELSEWHERE } else { "" };
                bail!("{why}: {}{next}", std::io::Error::from_raw_os_error(errno))
            }
            Answer::NotLoaded(reason) => bail!("the library can't be loaded there: {reason}"),
            Answer::None => bail!("it does not get on"),
        }
    }

    /// A file in memory, which has no name, in the process.
    fn put_library(
        &self,
        caller: &Caller,
        library: &Library,
        scratch: u64,
        undo: &mut Undo,
    ) -> anyhow::Result<u64> {
        self.memory.write(scratch, format!("{}\0", library.path()).as_bytes())?;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
        let at_working_directory = libc::AT_FDCWD as i64 as u64;
        if let Ok(fd) =
            caller.syscall(libc::SYS_openat, [at_working_directory, scratch, flags, 0, 0, 0])
        {
            undo.steps.push((libc::SYS_close, [fd, 0, 0, 0, 0, 0]));
            if self.is_file(fd, library) {
                return Ok(fd);
            }
        }
        // It may not look into this process: the file is made there.
        self.memory.write(scratch, b"libchase.so\0")?;
        let fd = caller
            .syscall(libc::SYS_memfd_create, [scratch, u64::from(libc::MFD_CLOEXEC), 0, 0, 0, 0])
            .context("no file can be opened in the process")?;
        undo.steps.push((libc::SYS_close, [fd, 0, 0, 0, 0, 0]));
        let path = format!("/proc/{}/fd/{fd}", self.process.pid);
        let mut file = OpenOptions::new().write(true).open(&path).with_context(|| path.clone())?;
        file.write_all(&library.bytes).context(path)?;
        Ok(fd)
    }

    fn is_file(&self, fd: u64, library: &Library) -> bool {
        let its = std::fs::metadata(format!("/proc/{}/fd/{fd}", self.process.pid));
        let own = library.file.metadata();
        matches!((its, own), (Ok(its), Ok(own)) if (its.dev(), its.ino()) == (own.dev(), own.ino()))
    }

    fn wait_for(&self, order_at: u64, patience: Duration) -> Option<Answer> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            match helper::answer(&self.memory.read(order_at, ORDER_LEN)) {
                Answer::None => std::thread::sleep(PAUSE),
                answer => return Some(answer),
            }
        }
        None
    }

    /// The thread runs in memory that is about to go.
    fn wait_for_end(&self, before: &[i32]) {
        let until = Instant::now() + LONG_PATIENCE;
        while Instant::now() < until
            && self.process.threads().iter().any(|tid| !before.contains(tid))
        {
            std::thread::sleep(PAUSE);
        }
    }

    /// All threads are ones that are not recorded.
    fn take_words(&self, attachment_at: u64, stopped: &Stopped) -> anyhow::Result<()> {
        let attachment = Attachment::read(&self.memory, attachment_at)?;
        ensure!(
            attachment.words != 0,
            "the dynamic linker has no room left for what chase keeps of each thread"
        );
        let words = [attachment.no_counts, attachment.no_thread, 0].map(u64::to_le_bytes).concat();
        for at in stopped.threads() {
            self.memory.write(at.registers.fs_base.wrapping_add(attachment.words), &words)?;
        }
        Ok(())
    }
}

fn attachment_of(object: &Object) -> Option<u64> {
    object.data(chase_format::attachment::SYMBOL)
}

fn is_other_version(object: &Object) -> bool {
    object.path.ends_with("/libchase.so") && attachment_of(object).is_none()
}

/// The main thread's stack grows.
fn is_main_stack(pid: i32, at: &At) -> bool {
    at.thread.tid == pid
}
