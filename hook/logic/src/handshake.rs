//! How a process finds the companion of its run, or starts one: what is done with `companion.session`, and for how long.
//!
//! The file, the clock, and what starts a companion are the caller's, so that a test can try every order of the steps.
//! The companion locks and writes the file by the same functions.
//!
//! The process that holds the file's lock exclusively is the companion, or is starting it. That the lock is held doesn't mean that
//! the file's contents are current: a companion that was killed leaves its line there, until the next one writes its own. So a
//! process clears the line *before* it takes the lock, under a shared lock, which excludes companions (see [`claim`]).

use chase_format::session::{FAILED, FIRST_LINE, SAMPLES, SESSION};

use crate::session::{number, second_line, started_since};
use crate::text::Text;

/// Why there is no session, as text for the user.
pub type Reason = Text<512>;

/// The reason given for a process that began before the companion was ready.
pub const NOT_READY: &[u8] =
    b"the companion was still starting when this process began: programs that start in the \
    next seconds are watched (chase record waits for it up to 3 s, and CHASE_SYSCALLS=require longer)";
/// Interval at which other processes check whether it is ready.
const PAUSE_MS: u64 = 2;
/// After a failure, processes of the same run don't try again for so long.
const FAILURE_HOLDS_S: u64 = 60;
/// What is written over the first bytes of the line of a companion that is gone: as many as [`SESSION`] and [`SAMPLES`] have.
const GONE: &[u8] = b"gone    ";
/// Bytes of the file that are read.
const READ: usize = 640;
/// The longest second line, so that its end is among them.
pub const LONGEST_LINE: usize = 576;

const _: () = assert!(SESSION.len() == GONE.len() && SAMPLES.len() == GONE.len());

/// How the lock of the file is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// With others that do so.
    Shared,
    /// By this one alone.
    Alone,
}

/// The file of the session, open.
pub trait SessionFile {
    /// What the kernel says when it refuses.
    type Error;

    /// Whether it is a regular file of this user.
    fn is_own(&self) -> bool;
    /// Takes the lock without waiting; returns false if others hold it. What was held before is given up, also if the
    /// lock is refused; if it is granted, nobody else has it alone in between.
    ///
    /// # Errors
    /// If the kernel can't lock it.
    fn lock(&self, how: Hold) -> Result<bool, Self::Error>;
    /// Gives the lock up, for all who have this open file.
    fn unlock(&self);
    /// Reads as much of its start as fits.
    fn read_start<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8];
    /// Writes at an offset.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn write_at(&self, bytes: &[u8], offset: usize) -> Result<(), Self::Error>;
    /// Cuts it off.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn cut(&self, len: usize) -> Result<(), Self::Error>;
}

/// The process that looks for a companion, and the kernel's part.
pub trait Seeker {
    /// The file, closed when it is dropped.
    type File: SessionFile;
    /// What the companion answers on.
    type Answer;

    /// Opens the file; makes it if there is none. If that is not possible, says so in `reason`.
    fn open(&self, reason: &mut Reason) -> Option<Self::File>;
    /// Returns the time since some moment.
    fn now_ms(&self) -> u64;
    /// Returns the time since 1970.
    fn now_s(&self) -> u64;
    /// Sleeps.
    fn pause_ms(&self, ms: u64);
    /// Starts a companion, which keeps `file` and with it the lock. If that is not possible, says why in `reason`.
    fn start(&self, file: &Self::File, reason: &mut Reason) -> Option<Self::Answer>;
    /// Reads what there is of its answer; 0 bytes if the answer has ended. `None` if there was nothing in that time, or for any
    /// other reason before it is over.
    fn hear(&self, answer: &Self::Answer, limit_ms: u64, buffer: &mut [u8]) -> Option<usize>;
    /// Kills the companion that was started.
    fn kill(&self, process: i32);
}

/// How long, and how stubbornly, a companion is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The time to wait for a companion that another process has started, and, if it is not required, for one's own as well.
    pub ms: u64,
    /// Whether the program must not run without it. Then one's own is waited for as long again, and killed if it is not
    /// ready by then.
    pub is_required: bool,
}

/// The outcome of one look.
enum Found {
    Session(u64),
    /// Another process is starting one.
    Later,
    /// There is none; `reason` says why.
    Nothing,
}

/// The outcome of starting one.
enum Heard {
    Ready,
    /// It can't record, or has ended; `reason` says why.
    Refused,
    /// It is still getting ready.
    NotYet,
}

/// Finds the session of a companion that listens; starts one if there is none. Where that fails, says why in `reason`.
pub fn find(seeker: &impl Seeker, patience: Patience, reason: &mut Reason) -> Option<u64> {
    // Where a companion listens, as mostly, the clock is not needed.
    let mut until_ms = None;
    loop {
        let file = seeker.open(reason)?;
        let found = look(seeker, &file, patience, &mut until_ms, reason);
        drop(file);
        match found {
            Found::Session(session) => return Some(session),
            Found::Nothing => return None,
            Found::Later => {}
        }
        let now_ms = seeker.now_ms();
        let until_ms = *until_ms.get_or_insert(now_ms.saturating_add(patience.ms));
        let left_ms = until_ms.saturating_sub(now_ms);
        if left_ms == 0 {
            reason.push(NOT_READY);
            return None;
        }
        seeker.pause_ms(PAUSE_MS.min(left_ms));
    }
}

fn look<S: Seeker>(
    seeker: &S,
    file: &S::File,
    patience: Patience,
    until_ms: &mut Option<u64>,
    reason: &mut Reason,
) -> Found {
    if !file.is_own() {
        reason.push(b"companion.session is no file of this user");
        return Found::Nothing;
    }
    let Ok(is_free) = file.lock(Hold::Shared) else {
        reason.push(b"can't lock companion.session");
        return Found::Nothing;
    };
    let mut buffer = [0; READ];
    let text = file.read_start(&mut buffer);
    let is_ours = text.is_empty() || is_session_file(text);
    let before = second_line(text);
    if !is_ours {
        reason.push(b"companion.session is a file of another program");
    } else if !is_free {
        return match session(before) {
            Some(session) => Found::Session(session),
            None if has_samples_alone(before, reason) => Found::Nothing,
            None => Found::Later,
        };
    } else if patience.is_required || !has_failed(before, seeker.now_s(), reason) {
        withdraw(file, before);
        if !matches!(file.lock(Hold::Alone), Ok(true)) {
            return Found::Later;
        }
        if let Some(answer) = seeker.start(file, reason) {
            return await_answer(seeker, file, patience, until_ms, (&answer, before), reason);
        }
    }
    // The lock would last as long as the file is open anywhere: another thread may have forked.
    if is_free {
        file.unlock();
    }
    Found::Nothing
}

/// Waits for the answer of a companion that was just started.
fn await_answer<S: Seeker>(
    seeker: &S,
    file: &S::File,
    patience: Patience,
    until_ms: &mut Option<u64>,
    (answer, before): (&S::Answer, &[u8]),
    reason: &mut Reason,
) -> Found {
    let own_ms = seeker.now_ms().saturating_add(patience.ms);
    let until_ms = if patience.is_required { own_ms } else { *until_ms.get_or_insert(own_ms) };
    let heard = hear(seeker, answer, until_ms, patience, reason);
    let mut buffer = [0; READ];
    let said = second_line(file.read_start(&mut buffer));
    match heard {
        Heard::Refused => {}
        // It may have become ready just now.
        Heard::Ready | Heard::NotYet if session(said).is_some() => {
            return session(said).map_or(Found::Nothing, Found::Session);
        }
        Heard::Ready | Heard::NotYet if has_samples_alone(said, reason) => return Found::Nothing,
        Heard::NotYet if !patience.is_required => {
            reason.push(NOT_READY);
            return Found::Nothing;
        }
        Heard::NotYet => {
            reason.push(b"the companion does not get ready");
            // It still has the lock.
            if let Some(process) = started_since(before, said) {
                seeker.kill(process);
            }
        }
        Heard::Ready => {
            reason.push(b"the companion has ended at once");
        }
    }
    let mut line = Reason::new();
    line.push(FAILED.as_bytes()).push_number(seeker.now_s()).push(b" ").push(reason.as_bytes());
    // If it can't be written, the next process finds out by itself.
    let _ = write_line(file, line.as_bytes());
    Found::Nothing
}

/// Reads the companion's answer until a time: either that it is ready, or why it can't record.
fn hear<S: Seeker>(
    seeker: &S,
    from: &S::Answer,
    until_ms: u64,
    patience: Patience,
    reason: &mut Reason,
) -> Heard {
    const PREFIX: &[u8] = b"chase: syscalls are not recorded: ";
    let mut buffer = [0u8; 480];
    let mut len = 0;
    while let Some(free) = buffer.get_mut(len..).filter(|free| !free.is_empty()) {
        // (Not longer if the clock can't be read.)
        let limit_ms = until_ms.saturating_sub(seeker.now_ms()).min(patience.ms);
        match seeker.hear(from, limit_ms, free) {
            Some(0) => break,
            Some(more) => len += more,
            None if limit_ms == 0 => return Heard::NotYet,
            None => {}
        }
        if buffer.get(..len).is_some_and(|text| text.contains(&b'\n')) {
            break;
        }
    }
    let text = buffer.get(..len).unwrap_or(&[]);
    match text.split(|&byte| byte == b'\n').next().unwrap_or(&[]) {
        b"ready" => return Heard::Ready,
        line if line.starts_with(SAMPLES.as_bytes()) => return Heard::Ready,
        b"" => reason.push(b"the companion did not answer"),
        line => reason.push(line.strip_prefix(PREFIX).unwrap_or(line)),
    };
    Heard::Refused
}

/// Returns the session of a companion that listens now; starts none.
pub fn listening(file: &impl SessionFile) -> Option<u64> {
    if !file.is_own() || !matches!(file.lock(Hold::Shared), Ok(false)) {
        return None;
    }
    let mut buffer = [0; READ];
    let text = file.read_start(&mut buffer);
    session(second_line(text)).filter(|_| is_session_file(text))
}

/// Takes the lock of the companion; returns false if it is held. From then on, the file says nothing of a companion that listened
/// before.
///
/// # Errors
/// If the kernel can't lock it.
pub fn claim<F: SessionFile>(file: &F) -> Result<bool, F::Error> {
    if !file.lock(Hold::Shared)? {
        return Ok(false);
    }
    let mut buffer = [0; READ];
    let text = file.read_start(&mut buffer);
    withdraw(file, second_line(text));
    let is_alone = file.lock(Hold::Alone)?;
    if !is_alone {
        // Some file systems keep the shared lock, with which another one could never take it.
        file.unlock();
    }
    Ok(is_alone)
}

/// Under the shared lock: no companion listens, so that `line`, the second one, which it has written, is no longer true. What else
/// is written stays: readers of the recordings look at the third line.
fn withdraw(file: &impl SessionFile, line: &[u8]) {
    if line.starts_with(SESSION.as_bytes()) || line.starts_with(SAMPLES.as_bytes()) {
        // If it can't be written, the next line can't either, and no companion starts.
        let _ = file.write_at(GONE, FIRST_LINE.len() + 1);
    }
}

/// Replaces the second line of the file, and what is behind it.
///
/// The first line stays: some file systems (ext4) write a file that was truncated to nothing and written again to the
/// disk at once, and free its blocks the next time, which may take a second.
///
/// # Errors
/// If the kernel refuses.
pub fn write_line<F: SessionFile>(file: &F, line: &[u8]) -> Result<(), F::Error> {
    let mut text = Text::<READ>::new();
    text.push(FIRST_LINE.as_bytes()).push(b"\n");
    let first = text.as_bytes().len();
    file.write_at(text.as_bytes(), 0)?;
    file.cut(first)?;
    text.clear();
    text.push(line.get(..LONGEST_LINE).unwrap_or(line)).push(b"\n");
    file.write_at(text.as_bytes(), first)
}

/// Whether this is the text of such a file, of this version.
fn is_session_file(text: &[u8]) -> bool {
    text.strip_prefix(FIRST_LINE.as_bytes()).is_some_and(|rest| rest.starts_with(b"\n"))
}

fn session(said: &[u8]) -> Option<u64> {
    said.strip_prefix(SESSION.as_bytes()).and_then(number)
}

/// Whether the companion only takes samples; if so, appends its explanation to `reason`.
fn has_samples_alone(said: &[u8], reason: &mut Reason) -> bool {
    let why = said.strip_prefix(SAMPLES.as_bytes());
    reason.push(why.unwrap_or(&[]));
    why.is_some()
}

/// Whether a companion failed to start a short time ago; if so, appends why to `reason`.
fn has_failed(said: &[u8], now_s: u64, reason: &mut Reason) -> bool {
    let Some(failure) = said.strip_prefix(FAILED.as_bytes()) else { return false };
    let mut parts = failure.splitn(2, |&byte| byte == b' ');
    let then_s = parts.next().and_then(number).unwrap_or(0);
    let is_recent = now_s.abs_diff(then_s) < FAILURE_HOLDS_S;
    if is_recent {
        reason.push(parts.next().unwrap_or(&[]));
    }
    is_recent
}

#[cfg(test)]
mod tests;
