//! Places that sampled calls, and long ones, are made from.
//!
//! The return address of a sampled call is in its frame anyway. For each context, the thread counts how many samples return to
//! which address. Of calls that are all timed, those that take long are added up likewise. The counts are in hash tables in the
//! recording itself, so nothing has to be written at the end. A place may be in several tables, whose counts the reader adds up.
//! When the tables are full, new places are not counted.

use core::cell::Cell;

use chase_format::layout::{CallerRow, ChunkKind, LONG_CALLS, PAGE};
use chase_format::writer::records_per_chunk;

use super::Tree;
use crate::arch::OwnCounter;
use crate::signals::SignalsBlocked;
use crate::{clock, recording};

/// A thread has up to this many tables, each of [`GROWTH`] times the length of the one before.
pub(super) const TABLES: usize = 3;
const GROWTH: usize = 4;
/// How many places in each table a row may be in.
const PROBES: usize = 4;

/// How many rows a table has.
const fn rows_in(table: usize) -> usize {
    records_per_chunk(len_of(table), size_of::<CallerRow>())
}

/// The length of a table's chunk.
const fn len_of(table: usize) -> usize {
    PAGE * GROWTH.pow(table as u32)
}

/// The places of a table at which a row may be.
fn places(table: usize, node_ref: u32, address: u64) -> impl Iterator<Item = usize> {
    let hash = (address ^ (u64::from(node_ref) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    // Without a division: the upper bits of a product are as even.
    let rows = rows_in(table);
    let first = ((hash * rows as u64) >> 32) as usize;
    (first..first + PROBES).map(move |at| if at < rows { at } else { at - rows })
}

impl Tree {
    /// Adds a call that returns to `address` (0: unknown) to the row of `node_ref`: a sample that stands for so many calls
    /// or, if that has the bit [`LONG_CALLS`], a call that took so many ticks. Returns whether room had to be made.
    ///
    /// # Safety
    /// The node is this thread's.
    #[inline]
    pub(crate) unsafe fn note_caller(&self, node_ref: u32, address: u64, more: u64) -> bool {
        let Some(row) = self.caller_row(node_ref, address) else {
            return self.add_caller(node_ref, address, more);
        };
        // SAFETY: rows live as long as the mapping, and are this thread's.
        unsafe { add(row, more) };
        false
    }

    /// Returns the row of these calls, if there is one.
    #[inline]
    fn caller_row(&self, node_ref: u32, address: u64) -> Option<*mut CallerRow> {
        for (number, table) in self.callers.iter().enumerate() {
            let table = table.get();
            if table.is_null() {
                return None;
            }
            for at in places(number, node_ref, address) {
                let row = table.wrapping_add(at);
                // SAFETY: the row is in the table, which lives as long as the mapping.
                let (row_node, returns_to) = unsafe { ((*row).node_ref, (*row).return_avma) };
                if row_node == 0 {
                    return None;
                }
                if row_node == node_ref && returns_to == address {
                    return Some(row);
                }
            }
        }
        None
    }

    /// Adds the row of these calls if there is room for it, or can be made. Returns whether it had to be made.
    #[cold]
    #[inline(never)]
    fn add_caller(&self, node_ref: u32, address: u64, more: u64) -> bool {
        if recording::stopped() || self.callers_are_full(node_ref, address) {
            return false;
        }
        let _signals = SignalsBlocked::new();
        // A handler may have added it meanwhile.
        if let Some(row) = self.caller_row(node_ref, address) {
            // SAFETY: as in `note_caller`.
            unsafe { add(row, more) };
            return false;
        }
        for (number, table) in self.callers.iter().enumerate() {
            let is_new = table.get().is_null();
            if is_new {
                let owner = self.owner.get();
                // Where hundreds of threads begin at once, all of them ask after their first long call, and would wait for each
                // other for tens of milliseconds. The next long call will do.
                let is_long = node_ref & LONG_CALLS != 0;
                let chunk = if is_long { recording::chunk_at_once } else { recording::chunk };
                let Some(chunk) = chunk(ChunkKind::Callers, owner, len_of(number)) else {
                    return !is_long;
                };
                chunk.commit(rows_in(number));
                table.set(chunk.contents().cast());
            }
            for at in places(number, node_ref, address) {
                let row = table.get().wrapping_add(at);
                // SAFETY: the row is in the table, and signals are blocked. A reader takes it once it has a node.
                unsafe {
                    if (*row).node_ref == 0 {
                        (*row).first_ticks = clock::now();
                        (*row).return_avma = address;
                        add(row, more);
                        (&raw mut (*row).node_ref).write_volatile(node_ref);
                        return is_new;
                    }
                }
            }
        }
        false
    }

    /// Whether the last table has no room for these calls: then nothing is to be done.
    fn callers_are_full(&self, node_ref: u32, address: u64) -> bool {
        let last = TABLES - 1;
        let Some(table) = self.callers.get(last).map(Cell::get) else { return true };
        // SAFETY: the rows are in the table.
        !table.is_null()
            && places(last, node_ref, address)
                .all(|at| unsafe { (*table.wrapping_add(at)).node_ref != 0 })
    }
}

/// Adds a sample, or a long call, to a row.
///
/// # Safety
/// The row is the calling thread's.
unsafe fn add(row: *mut CallerRow, more: u64) {
    // SAFETY: the caller vouches for the row.
    unsafe {
        OwnCounter::at(&raw mut (*row).samples).add(1);
        OwnCounter::at(&raw mut (*row).calls).add(more);
    }
}
