//! Finds the definition that a name is bound to, as the dynamic linker does for a jump slot.
//!
//! `dlsym` can't be used: in a position-dependent executable it returns the executable's own PLT entry for each
//! function whose address is taken there, and a slot with that target would call itself.

#[cfg(all(test, not(miri)))]
pub(crate) mod tests;

use crate::elf::{HIDDEN, Image, SHN_UNDEF, STB_LOCAL, STT_TLS, Symbol, Version};
use crate::symbol_hash;

/// A name being looked up.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    name: &'a [u8],
    gnu_hash: u32,
    version: Option<Version>,
}

impl<'a> Wanted<'a> {
    /// Returns a name in a version, or in any that is not hidden.
    #[must_use]
    pub fn new(name: &'a [u8], version: Option<Version>) -> Self {
        Self { name, gnu_hash: symbol_hash::gnu(name), version }
    }

    /// Returns the hash of the name in GNU tables.
    #[must_use]
    pub fn gnu_hash(&self) -> u32 {
        self.gnu_hash
    }
}

/// Whether `symbol` is a definition that others can be bound to.
fn is_definition(symbol: &Symbol) -> bool {
    let defined = symbol.section != SHN_UNDEF && (symbol.value != 0 || symbol.kind() == STT_TLS);
    defined && symbol.binding() != STB_LOCAL
}

/// Returns the definition of `wanted` in one object.
pub fn find_in(image: &Image, wanted: &Wanted<'_>) -> Option<&'static Symbol> {
    let mut fallback = None;
    let mut fallbacks = 0;
    let mut check = |index: u32| {
        let symbol = image.symbol(index);
        if !is_definition(symbol) || !image.has_name(symbol, wanted.name) {
            return None;
        }
        match fits(image, index, wanted.version.as_ref()) {
            Fit::Yes => Some(symbol),
            Fit::IfAlone => {
                fallback = Some(symbol);
                fallbacks += 1;
                None
            }
            Fit::No => None,
        }
    };
    let found = if image.gnu_hash != 0 {
        walk_gnu(image, wanted.gnu_hash, &mut check)
    } else if image.sysv_hash != 0 {
        walk_sysv(image, symbol_hash::sysv(wanted.name), &mut check)
    } else {
        None
    };
    // If no version was asked for, a symbol that exists in only one version is accepted.
    found.or(if fallbacks == 1 { fallback } else { None })
}

/// Returns the definition of `wanted` in one object, where no other symbol than `index` has this name.
pub fn find_at(image: &Image, index: u32, wanted: &Wanted<'_>) -> Option<&'static Symbol> {
    let symbol = image.symbol(index);
    let found = is_definition(symbol)
        && image.has_name(symbol, wanted.name)
        && !matches!(fits(image, index, wanted.version.as_ref()), Fit::No);
    found.then_some(symbol)
}

enum Fit {
    Yes,
    No,
    IfAlone,
}

/// Applies the rules of versions, as glibc's `check_match` does.
fn fits(image: &Image, index: u32, wanted: Option<&Version>) -> Fit {
    const FIRST_DEFINED: u16 = 3;
    let Some(number) = image.version_number(index) else { return Fit::Yes };
    match wanted {
        Some(wanted) => match image.defined_version(number & !HIDDEN) {
            Some(defined) if defined.hash == wanted.hash && defined.name == wanted.name => Fit::Yes,
            // An object that doesn't define this version at all may serve by its base version.
            None if number & HIDDEN == 0 => Fit::Yes,
            _ => Fit::No,
        },
        None if number & !HIDDEN < FIRST_DEFINED => Fit::Yes,
        None if number & HIDDEN == 0 => Fit::IfAlone,
        None => Fit::No,
    }
}

fn walk_gnu<T>(image: &Image, hash: u32, check: &mut impl FnMut(u32) -> Option<T>) -> Option<T> {
    let table = image.gnu_hash as *const u32;
    // SAFETY: the table is the one that the dynamic linker uses; chains end with an odd hash.
    unsafe {
        let (buckets, first, words, shift) = (*table, *table.add(1), *table.add(2), *table.add(3));
        let bloom = table.add(4).cast::<u64>();
        let word = *bloom.add(((hash / 64) & (words - 1)) as usize);
        let mask = 1u64 << (hash % 64) | 1u64 << ((hash >> shift) % 64);
        if word & mask != mask || buckets == 0 {
            return None;
        }
        let heads = bloom.add(words as usize).cast::<u32>();
        let chains = heads.add(buckets as usize);
        let mut index = *heads.add((hash % buckets) as usize);
        if index < first {
            return None;
        }
        loop {
            let found = *chains.add((index - first) as usize);
            if (found ^ hash) >> 1 == 0
                && let Some(result) = check(index)
            {
                return Some(result);
            }
            if found & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }
}

fn walk_sysv<T>(image: &Image, hash: u32, check: &mut impl FnMut(u32) -> Option<T>) -> Option<T> {
    let table = image.sysv_hash as *const u32;
    // SAFETY: as in `walk_gnu`; chains end with 0.
    unsafe {
        let buckets = *table;
        if buckets == 0 {
            return None;
        }
        let mut index = *table.add(2 + (hash % buckets) as usize);
        while index != 0 {
            if let Some(result) = check(index) {
                return Some(result);
            }
            index = *table.add((2 + buckets + index) as usize);
        }
    }
    None
}

/// Calls `f` with the GNU hash of each name that [`find_in`] may find in an object, and the symbol's number. (The
/// lowest bit of a hash may be wrong.)
pub fn for_each_hash(image: &Image, mut f: impl FnMut(u32, u32)) {
    if image.gnu_hash != 0 {
        // SAFETY: as in `walk_gnu`; the last chain is the one that begins last.
        unsafe {
            let (first, last, chains) = gnu_chains(image);
            let mut index = first;
            while last >= first.max(1) {
                let hash = *chains.add((index - first) as usize);
                f(hash, index);
                if index >= last && hash & 1 != 0 {
                    break;
                }
                index += 1;
            }
        }
    } else if image.sysv_hash != 0 {
        for index in 1..sysv_symbols(image) {
            let symbol = image.symbol(index);
            if is_definition(symbol) {
                f(symbol_hash::gnu(image.name(symbol)), index);
            }
        }
    }
}

/// Returns approximately how many names that are, or slightly fewer.
pub fn hash_count(image: &Image) -> usize {
    if image.gnu_hash != 0 {
        // SAFETY: as in `for_each_hash`.
        let (first, last, _) = unsafe { gnu_chains(image) };
        (last.saturating_sub(first)) as usize
    } else if image.sysv_hash != 0 {
        sysv_symbols(image) as usize
    } else {
        0
    }
}

/// Returns the first symbol in the GNU hash table, the first of the last chain, and the chains.
///
/// # Safety
/// The object has such a table.
unsafe fn gnu_chains(image: &Image) -> (u32, u32, *const u32) {
    let table = image.gnu_hash as *const u32;
    // SAFETY: as in `walk_gnu`.
    unsafe {
        let (buckets, first, words) = (*table, *table.add(1), *table.add(2));
        let heads = table.add(4).cast::<u64>().add(words as usize).cast::<u32>();
        let last = (0..buckets as usize).map(|at| *heads.add(at)).max().unwrap_or(0);
        (first, last, heads.add(buckets as usize))
    }
}

/// Returns the number of symbols of an object with a System V hash table.
fn sysv_symbols(image: &Image) -> u32 {
    // SAFETY: as in `walk_sysv`; there are as many chains as symbols.
    unsafe { *(image.sysv_hash as *const u32).add(1) }
}
