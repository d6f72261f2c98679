//! Walks trees that are given by the caller of each node.

/// No caller, no callee.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Trees of numbered contexts, callers before callees.
pub(crate) struct Forest {
    first_callee: Vec<u32>,
    next_sibling: Vec<u32>,
    first_root: u32,
}

/// A step of a depth-first walk.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Enter(u32),
    Leave(u32),
}

impl Forest {
    /// `callers` has the number of each context's caller, or [`NOBODY`].
    pub(crate) fn new(callers: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator) -> Self {
        let len = callers.len();
        Self::in_order(len, callers.enumerate().rev().map(|(own, caller)| (own as u32, caller)))
    }

    /// Like [`Forest::new`], for (number, caller) in the reverse order of siblings.
    pub(crate) fn in_order(len: usize, reversed: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut forest = Self {
            first_callee: vec![NOBODY; len],
            next_sibling: vec![NOBODY; len],
            first_root: NOBODY,
        };
        for (own, caller) in reversed {
            let head = match caller {
                NOBODY => &mut forest.first_root,
                caller => &mut forest.first_callee[caller as usize],
            };
            forest.next_sibling[own as usize] = std::mem::replace(head, own);
        }
        forest
    }

    /// Visits everything, depth first, siblings in order.
    pub(crate) fn walk(&self, mut visit: impl FnMut(Step)) {
        let mut at = self.first_root;
        let mut path = Vec::new();
        while at != NOBODY {
            visit(Step::Enter(at));
            let below = self.first_callee[at as usize];
            if below != NOBODY {
                path.push(at);
                at = below;
                continue;
            }
            loop {
                visit(Step::Leave(at));
                let next = self.next_sibling[at as usize];
                if next != NOBODY {
                    at = next;
                    break;
                }
                match path.pop() {
                    Some(caller) => at = caller,
                    None => return,
                }
            }
        }
    }

    /// Returns which contexts have no caller, direct or not, with the same key. `open` is scratch space, longer than
    /// any key; it is all zero before and after.
    pub(crate) fn outermost(&self, key_of: impl Fn(u32) -> u32, open: &mut [u32]) -> Vec<bool> {
        let mut outermost = vec![false; self.first_callee.len()];
        self.walk(|step| match step {
            Step::Enter(at) => {
                let open = &mut open[key_of(at) as usize];
                outermost[at as usize] = *open == 0;
                *open += 1;
            }
            Step::Leave(at) => open[key_of(at) as usize] -= 1,
        });
        outermost
    }
}
