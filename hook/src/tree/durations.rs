//! The durations of a node's calls: a histogram, whose pages are added when a duration falls into them.

use chase_format::histogram::{PAGE_BUCKETS, bucket_of};
use chase_format::layout::Node;

use super::Tree;
use crate::arch::OwnCounter;
use crate::node::{add_ticks, add_unwound, is_sampled, node_at, samples_of};
use crate::signals::SignalsBlocked;

impl Tree {
    /// Records a completed call of `ticks` outside of the call path.
    pub(crate) fn record(&self, node: *mut Node, ticks: u64, may_add_page: bool) {
        self.count_durations(node, ticks, 1, may_add_page);
        // SAFETY: the node is one of this thread's, which is the only one to write it.
        unsafe {
            add_ticks(node, ticks);
            (*node).max_ticks = (*node).max_ticks.max(ticks);
        }
    }

    /// Adds `calls` of `ticks` each to the histogram of a node.
    pub(crate) fn count_durations(
        &self,
        node: *mut Node,
        ticks: u64,
        calls: u64,
        may_add_page: bool,
    ) {
        // SAFETY: the node is one of this thread's, which is the only one to write it.
        unsafe { self.count_in_pages(page_refs_of(node), node, ticks, calls, may_add_page) }
    }

    /// Whether the histogram of a node has no page for `ticks`.
    pub(crate) fn lacks_page(&self, node: *mut Node, ticks: u64) -> bool {
        // SAFETY: the node is one of this thread's.
        unsafe { *page_refs_of(node).add(bucket_of(ticks) / PAGE_BUCKETS) == 0 }
    }

    /// Makes sure that the histogram of a node has a page for `ticks`, if there is room.
    pub(crate) fn make_page(&self, node: *mut Node, ticks: u64) {
        // SAFETY: the node is one of this thread's.
        unsafe {
            let page_ref = page_refs_of(node).add(bucket_of(ticks) / PAGE_BUCKETS);
            if *page_ref == 0 {
                self.add_page(page_ref);
            }
        }
    }

    /// Adds `calls` of `ticks` each to the histogram of a node, which has the pages in `page_refs`.
    ///
    /// # Safety
    /// They are the node's pages, and the node is one of this thread's, which alone writes to it.
    #[inline]
    pub(crate) unsafe fn count_in_pages(
        &self,
        page_refs: *mut u32,
        node: *mut Node,
        ticks: u64,
        calls: u64,
        may_add_page: bool,
    ) {
        let bucket = bucket_of(ticks);
        // SAFETY: the caller vouches for the node; pages are as large as a page of the histogram and lie in
        // the mapping.
        unsafe {
            let page_ref = page_refs.add(bucket / PAGE_BUCKETS);
            if *page_ref == 0 && may_add_page {
                self.add_page(page_ref);
            }
            if *page_ref == 0 {
                add_unwound(node);
            } else {
                let page = node_at(*page_ref).cast::<u64>();
                OwnCounter::at(page.add(bucket % PAGE_BUCKETS)).add(calls);
            }
        }
    }

    /// Returns the number of durations in the histogram of a node.
    pub(crate) fn completed(&self, node: *const Node) -> u64 {
        // SAFETY: the node is one of this thread's; pages lie in the mapping.
        let page_refs = unsafe { (*node).page_refs };
        let pages = page_refs.iter().filter(|&&page_ref| page_ref != 0);
        // SAFETY: as above.
        pages
            .flat_map(|&page_ref| unsafe { *node_at(page_ref).cast::<[u64; PAGE_BUCKETS]>() })
            .sum()
    }

    /// Makes the page of a histogram into which a duration has fallen, if there is room.
    ///
    /// # Safety
    /// The place is in one of this thread's nodes.
    #[cold]
    unsafe fn add_page(&self, page_ref: *mut u32) {
        let _signals = SignalsBlocked::new();
        // SAFETY: the caller vouches for the place.
        unsafe {
            if *page_ref == 0 {
                *page_ref = self.push_page();
            }
        }
    }
}

/// Returns the page references of a node's histogram.
///
/// # Safety
/// It is a node.
unsafe fn page_refs_of(node: *mut Node) -> *mut u32 {
    // SAFETY: the caller vouches for the node; what is behind that of sampled calls belongs to it.
    unsafe {
        if is_sampled(node) {
            (&raw mut (*samples_of(node)).page_refs).cast()
        } else {
            (&raw mut (*node).page_refs).cast()
        }
    }
}
