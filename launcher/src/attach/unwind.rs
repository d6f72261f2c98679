//! Who called whom in a thread that has stopped, by the tables that exceptions go by.
//!
//! Unlike what lies on a stack, this does not mistake calls that have long returned for calls under way. It is known only where
//! each function up to the thread's first one has such tables: generated code has none.

use std::ops::Range;

use chase_format::attachment::PAD_LEN;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use libc::user_regs_struct;

use super::memory::Memory;
use super::objects::{Frames, Object};

/// Deeper stacks are not known.
const DEEPEST: usize = 10_000;
/// A larger table is damaged.
const LARGEST: u64 = 256 << 20;

/// Where calls return to that the library times: the caller goes on where the pad's frame says. (What tells exceptions so is more than
/// the unwinder here understands.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Pads {
    pub(super) start: u64,
    pub(super) count: u64,
    pub(super) frames: u64,
}

impl Pads {
    /// Where the caller goes on of what returns to `at`, which may be in a pad; so may that be.
    fn caller(self, mut at: u64, memory: &Memory) -> u64 {
        for _ in 0..DEEPEST {
            let number = at.wrapping_sub(self.start) / PAD_LEN;
            if at < self.start || number >= self.count {
                break;
            }
            let Some([caller]) = memory.words(self.frames + number * PAD_LEN) else { break };
            at = caller;
        }
        at
    }
}

/// The tables of all objects of a process.
pub(super) struct Tables {
    unwinder: UnwinderX86_64<Vec<u8>>,
    covered: Vec<Range<u64>>,
    /// Of the library, if it is there.
    pads: Option<Pads>,
}

impl Tables {
    pub(super) fn new(objects: &[Object], pads: Option<Pads>, memory: &Memory) -> Self {
        let mut this = Self { unwinder: UnwinderX86_64::new(), covered: Vec::new(), pads };
        for object in objects {
            if let Some(module) = module(object, memory) {
                this.unwinder.add_module(module);
                this.covered.push(object.range.clone());
            }
        }
        this
    }

    /// Where the functions return to in which a thread is, from the innermost on; `None` if that can't be told for all.
    pub(super) fn returns(
        &self,
        registers: &user_regs_struct,
        memory: &Memory,
    ) -> Option<Vec<u64>> {
        let mut cache = CacheX86_64::<_>::new();
        let mut read = |at| memory.words::<1>(at).map(|[word]| word).ok_or(());
        let mut own = UnwindRegsX86_64::new(registers.rip, registers.rsp, registers.rbp);
        let mut frame = FrameAddress::from_instruction_pointer(registers.rip);
        let mut returns = Vec::new();
        loop {
            // (Beyond the tables, a guess would be made.)
            let at = frame.address_for_lookup();
            if !self.covered.iter().any(|range| range.contains(&at)) || returns.len() > DEEPEST {
                return None;
            }
            let unwound = self.unwinder.unwind_frame(frame, &mut own, &mut cache, &mut read);
            let Some(caller) = unwound.ok()? else { break };
            let caller = self.pads.map_or(caller, |pads| pads.caller(caller, memory));
            own.set_ip(caller);
            returns.push(caller);
            frame = FrameAddress::from_return_address(caller)?;
        }
        Some(returns)
    }
}

fn module(object: &Object, memory: &Memory) -> Option<Module<Vec<u8>>> {
    let Frames { bias, index, end } = object.frames.clone()?;
    let bytes = memory.read(index.start, index.end.checked_sub(index.start)? as usize);
    // The version, and how the place of the tables is written: how far it is from here.
    const RELATIVE: [u8; 2] = [1, 0x1b];
    if !bytes.starts_with(&RELATIVE) {
        return None;
    }
    let distance = i32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    let start = (index.start + 4).wrapping_add_signed(distance.into());
    let len = end.checked_sub(start).filter(|len| *len <= LARGEST)?;
    let tables = memory.read(start, len as usize);
    let of_file = |range: Range<u64>| range.start.wrapping_sub(bias)..range.end.wrapping_sub(bias);
    let sections = ExplicitModuleSectionInfo {
        eh_frame_hdr_svma: Some(of_file(index)),
        eh_frame_hdr: Some(bytes),
        eh_frame_svma: Some(of_file(start..start + tables.len() as u64)),
        eh_frame: Some(tables),
        ..ExplicitModuleSectionInfo::default()
    };
    Some(Module::new(object.path.clone(), object.range.clone(), bias, sections))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process::Command;

    use super::super::objects;
    use super::super::trace::Thread;
    use super::*;

    #[test]
    fn the_callers_of_a_thread_that_waits_are_known_up_to_its_first() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = child.id() as i32;
        // It is in the C library by then.
        let blocked = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
            stat.starts_with(&format!("{} ", libc::SYS_clock_nanosleep))
        };
        while !blocked() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let thread = Thread::seize(pid).expect("our child");
        thread.interrupt().expect("it runs");
        while thread.stop_reason().is_none() {
            std::thread::yield_now();
        }
        let registers = thread.registers().expect("it has stopped");
        let memory = Memory::open(pid).expect("our child's");
        let objects = objects::loaded(pid, &memory);
        let returns = Tables::new(&objects, None, &memory).returns(&registers, &memory);
        child.kill().expect("our child");
        let _ = child.wait();
        let returns = returns.expect("each function has tables");
        let is_in = |name: &str, at: &u64| {
            let object = objects.iter().find(|object| object.range.contains(at));
            object.is_some_and(|object| object.path.contains(name))
        };
        // The last is `_start`, and `__libc_start_main` is before it.
        let names: Vec<bool> = returns.iter().map(|at| is_in("/sleep", at)).collect();
        assert!(returns.len() >= 4 && names.ends_with(&[true]), "{returns:x?} {names:?}");
        assert!(names.iter().any(|is_own| !is_own), "{returns:x?}");
    }

    #[test]
    fn behind_a_pad_is_the_caller_that_its_frame_names() {
        const START: u64 = 0x10_0000;
        let mut frames = [[0u64; PAD_LEN as usize / 8]; 3];
        let memory = Memory::open(std::process::id() as i32).expect("our own");
        let pads = Pads { start: START, count: 3, frames: frames.as_ptr().addr() as u64 };
        frames[0][0] = 0x4711;
        frames[2][0] = START + 6;
        black_box(&frames);
        // Two calls returned there one after the other, by a tail call.
        assert_eq!(pads.caller(START + 2 * PAD_LEN + 6, &memory), 0x4711);
        assert_eq!(pads.caller(START + 3 * PAD_LEN, &memory), START + 3 * PAD_LEN);
        assert_eq!(pads.caller(START - 1, &memory), START - 1);
        // Damaged, it leads nowhere.
        frames[0][0] = START + 2 * PAD_LEN;
        black_box(&frames);
        assert!((START..START + 3 * PAD_LEN).contains(&pads.caller(START, &memory)));
    }
}
