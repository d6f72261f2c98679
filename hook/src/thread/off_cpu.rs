//! Time off the CPU, where no companion watches the scheduler: the thread asks the kernel for it.
//!
//! A thread that is off the CPU for long is either in a call that takes long, or in its own code before the next such
//! call. So at the end of each call of 50 µs or more, the thread asks for how long it has run since it last asked.
//! The missing time belongs to that call, or to the stretch before it. The call gets as much as it took longer than
//! others of its kind; or all of it if the thread blocked, which its own code hardly does. (`frames/asking.rs`
//! decides when to ask.)

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use chase_format::layout::{ChunkKind, Node, OffCpuRow, PAGE, ThreadRecord};
use chase_format::writer::records_per_chunk;

use super::Thread;
use super::long_calls::{ask_limit, set_ask_limit};
use crate::node::reference;
use crate::signals::SignalsBlocked;
use crate::{clock, recording, sys};
use chase_logic::off_cpu::Stretch;

/// The limit until the clock's rate is known: 50 µs of a counter of 3 GHz.
const FIRST_LIMIT: u64 = 150_000;
/// A shorter time may be an interrupt, or the time that asking takes.
const NOISE_NS: u64 = 8_000;

/// The shortest time that asking has taken, in ticks.
pub(crate) static LEAST_COST: AtomicU64 = AtomicU64::new(u64::MAX);
/// A thread's rows are in up to this many tables, each twice as large as the one before.
const TABLES: usize = 6;
/// How many places in each table a row may be in.
const PROBES: usize = 8;

/// The values when a thread last asked, and the tables of its rows.
pub(crate) struct OffCpu {
    ticks: Cell<u64>,
    wall_ns: Cell<u64>,
    cpu_ns: Cell<u64>,
    switches: Cell<(u64, u64)>,
    /// Its processor time when its record began.
    first_cpu_ns: Cell<u64>,
    tables: [Cell<*mut OffCpuRow>; TABLES],
}

/// Makes threads ask from now on.
pub(crate) fn start() {
    set_ask_limit(FIRST_LIMIT);
}

pub(crate) fn is_on() -> bool {
    ask_limit() != u64::MAX && !sys::is_confined_here()
}

impl OffCpu {
    pub(crate) const fn new() -> Self {
        Self {
            ticks: Cell::new(0),
            wall_ns: Cell::new(0),
            cpu_ns: Cell::new(0),
            switches: Cell::new((0, 0)),
            first_cpu_ns: Cell::new(0),
            tables: [const { Cell::new(ptr::null_mut()) }; TABLES],
        }
    }
}

impl Thread {
    /// Lets the thread, which has a new record, ask for the first time.
    pub(crate) fn begin_asking(&self, record: *mut ThreadRecord) {
        let own = &self.off_cpu;
        own.tables.iter().for_each(|table| table.set(ptr::null_mut()));
        if !is_on() {
            return;
        }
        let began_ticks = clock::now();
        self.take_stretch(began_ticks);
        LEAST_COST.fetch_min(clock::now().saturating_sub(began_ticks), Ordering::Relaxed);
        own.first_cpu_ns.set(own.cpu_ns.get());
        own.switches.set(sys::switches());
        // SAFETY: the record is this thread's.
        unsafe { (*record).asks = 1 };
    }

    pub(crate) fn note_on_cpu(&self, record: *mut ThreadRecord) {
        let own = &self.off_cpu;
        // SAFETY: the record is this thread's.
        unsafe { (*record).cpu_ns = own.cpu_ns.get().saturating_sub(own.first_cpu_ns.get()) };
    }

    /// Returns the stretch since the thread last asked. (If a handler asks in between, this stretch is shorter, or
    /// empty.)
    pub(crate) fn take_stretch(&self, now_ticks: u64) -> Stretch {
        let own = &self.off_cpu;
        let wall_ns = sys::clock_ns(libc::CLOCK_MONOTONIC);
        let cpu_ns = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        let began_ticks = own.ticks.replace(now_ticks);
        let ns = wall_ns.saturating_sub(own.wall_ns.replace(wall_ns));
        let ran_ns = cpu_ns.saturating_sub(own.cpu_ns.replace(cpu_ns));
        let missing_ns = ns.saturating_sub(ran_ns);
        let off_ns = if missing_ns < NOISE_NS { 0 } else { missing_ns };
        let mut switches = (0, 0);
        if off_ns > 0 && began_ticks > 0 {
            let now = sys::switches();
            let before = own.switches.replace(now);
            switches = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        }
        Stretch { began_ticks, ticks: now_ticks.saturating_sub(began_ticks), ns, off_ns, switches }
    }

    /// Adds `ns` of a stretch's missing time to a node.
    pub(crate) fn add_off_cpu(&self, node: *mut Node, ns: u64, stretch: &Stretch) {
        if ns == 0 {
            return;
        }
        let Some(row) = self.row(node) else { return };
        row.times += 1;
        let blocked_ns = stretch.blocked_part(ns);
        row.blocked_ns += blocked_ns;
        row.preempted_ns += ns - blocked_ns;
    }

    /// Returns the row of a node, which is added if necessary; `None` if there is no room.
    #[expect(
        clippy::mut_from_ref,
        reason = "rows are this thread's, and none is held when another is asked for"
    )]
    pub(crate) fn row(&self, node: *mut Node) -> Option<&mut OffCpuRow> {
        let node_ref = reference(node);
        let hash = (node_ref.wrapping_mul(0x9e37_79b1) >> 8) as usize;
        for (number, table) in self.off_cpu.tables.iter().enumerate() {
            let bytes = PAGE << number;
            let places = records_per_chunk(bytes, size_of::<OffCpuRow>());
            if table.get().is_null() {
                let _signals = SignalsBlocked::new();
                let chunk = recording::chunk(ChunkKind::OffCpu, self.index(), bytes)?;
                chunk.commit(places);
                table.set(chunk.contents().cast());
                // Waits while the table was made are not part of the next stretch.
                self.off_cpu.switches.set(sys::switches());
            }
            for probe in 0..PROBES {
                let place = table.get().wrapping_add((hash + probe) % places);
                // SAFETY: the place is in the table, which is in the mapping and this thread's.
                let row = unsafe { &mut *place };
                if row.node_ref == 0 {
                    row.node_ref = node_ref;
                }
                if row.node_ref == node_ref {
                    return Some(row);
                }
            }
        }
        None
    }
}
