//! Causes of waits, in words.

use std::collections::HashMap;

use chase_analyzer::{
    Blame, CauseRow, CodeAddress, GroupRow, NamingPlaces, Party, PartyKind, Purpose, WaitObject,
};

use crate::places::{AddressKind, Place};
use crate::report::{Report, file_name};

/// What stands for the code outside of library calls.
const OWN_CODE: &str = "(own code)";
/// The same where calls were only counted: it may be in one of these.
pub(crate) const OUTSIDE: &str = "(outside timed calls)";

/// A function's name, or what stands for the code outside.
pub(crate) fn function(report: &Report, api: Option<u32>) -> &str {
    match api {
        Some(api) => report.names.short(api as usize),
        None if report.analysis.only_counts() => OUTSIDE,
        None => OWN_CODE,
    }
}

/// Where a call was made: `update_stats convoy.c:14`; empty if that is not known.
pub(crate) fn site(report: &Report, process: usize, site: Option<CodeAddress>) -> String {
    let Some(site) = site else { return String::new() };
    place(report, process, &site).short(object_name(report, &site))
}

/// Whether the place of a wait is in what it was for already: what has no name is called after the place, or after one in the
/// program instead of one in a library.
pub(crate) fn is_said(
    report: &Report,
    object: &str,
    process: usize,
    site: Option<CodeAddress>,
) -> bool {
    let place = self::site(report, process, site);
    [")", ","].iter().any(|end| object.contains(&format!(" in {place}{end}")))
        || object.contains("released in ") && is_of_library(report, process, site)
}

/// Whether that place is in the source of a library, and no more is known.
pub(crate) fn is_of_library(report: &Report, process: usize, site: Option<CodeAddress>) -> bool {
    site.is_some_and(|site| place(report, process, &site).is_of_library())
}

/// The source place of a return address.
pub(crate) fn place(report: &Report, process: usize, site: &CodeAddress) -> Place {
    report.places.find(report.files(), process, site, AddressKind::ReturnAddress)
}

fn object_name<'r>(report: &'r Report, address: &CodeAddress) -> &'r str {
    address.object.map_or("", |object| report.names.object(object))
}

/// What was waited for: a variable, an address with the place where it was waited for, a file.
pub(crate) fn object(report: &Report, process: usize, object: &WaitObject) -> String {
    let name = bare_object(report, process, object);
    let places = report.taken_at.get_or_init(|| taken_at(report));
    let place = places.get(&(process, object.clone())).filter(|_| is_anonymous(object));
    match place {
        Some(place) => format!("{name} ({place})"),
        None => name,
    }
}

/// Whether it has no name.
fn is_anonymous(object: &WaitObject) -> bool {
    match object {
        WaitObject::Memory(address) => address.svma.is_none(),
        WaitObject::Parked(_) => true,
        WaitObject::File { .. } | WaitObject::Connections(_) | WaitObject::None => false,
    }
}

/// Where each lock was taken that somebody waited for, and where other words of memory were waited for: in the place with the
/// longest waits. What is on the heap has no other name. (A lock that is known by where its threads wait is called after where it is
/// released: they all wait at one place of a library.)
fn taken_at(report: &Report) -> HashMap<(usize, WaitObject), String> {
    let mut longest: HashMap<_, &CauseRow> = HashMap::new();
    for row in report.causes().iter().filter(|row| row.site.is_some()) {
        if is_anonymous(&row.object) {
            let known = longest.entry((row.process, row.object.clone())).or_insert(row);
            if known.wait_ns < row.wait_ns {
                *known = row;
            }
        }
    }
    let named = longest.into_iter().map(|(object, row)| {
        let at = site(report, row.process, row.site);
        let released = released_by(report, row);
        let place = match (&row.object, released) {
            (WaitObject::Parked(_), Some(place)) => format!("released in {place}"),
            _ if !row.purpose.is_lock() => format!("waited for in {at}"),
            (_, Some(place)) if is_of_library(report, row.process, row.site) => {
                format!("taken in {at}, released in {place}")
            }
            _ => format!("taken in {at}"),
        };
        (object, place)
    });
    named.collect()
}

/// Where the program ended most of the waits, if that is known.
fn released_by(report: &Report, row: &CauseRow) -> Option<String> {
    let most = row.wakers.iter().max_by_key(|waker| waker.wait_ns)?;
    let at = place(report, most.process, &most.site?);
    let is_known = most.kind == PartyKind::Thread && at.is_known() && !at.is_of_library();
    is_known.then(|| site(report, most.process, most.site))
}

/// The same without the place, as one may ask for it.
pub(crate) fn bare_object(report: &Report, process: usize, object: &WaitObject) -> String {
    match object {
        WaitObject::None => String::new(),
        WaitObject::File { name } if name.is_empty() => "a closed file".to_owned(),
        WaitObject::File { name } => name.clone(),
        WaitObject::Connections(of) => {
            let how = if of.accepted { "accepted at" } else { "to" };
            format!("{} connections {how} {}", of.number, of.address)
        }
        WaitObject::Parked(_) => "a lock of parking_lot".to_owned(),
        WaitObject::Memory(address) => {
            report.routines().variable(process, address).unwrap_or_else(|| memory(report, address))
        }
    }
}

/// The same of a cause: also a page, which has no name, and the thread or the process whose end is waited for, if all that ended such
/// waits are alike.
pub(crate) fn awaited(report: &Report, row: &CauseRow) -> String {
    let named = object(report, row.process, &row.object);
    if !named.is_empty() {
        return named;
    }
    let group = |waker: &Party| {
        let number = waker.group.filter(|_| waker.kind == PartyKind::Thread)?;
        report.groups().rows.get(number as usize)
    };
    let one = |name: &dyn Fn(&GroupRow) -> String| {
        let mut names = row.wakers.iter().map(|waker| group(waker).map(name));
        let first = names.next()??;
        names.all(|name| name.as_ref() == Some(&first)).then_some(first)
    };
    let end = match row.purpose {
        Purpose::MemoryMap => Some("the memory map".to_owned()),
        Purpose::Join if ends_with_process(report, row) => None,
        Purpose::Join => one(&|group| format!("the end of {}", group.label)),
        Purpose::Child => {
            // `wait4` and `waitid`; `vfork` and its like wait until the child runs its program.
            let is_end = row.syscall.is_some_and(|number| matches!(number, 61 | 247));
            let what = if is_end { "end" } else { "start" };
            one(&|group| format!("the {what} of process {}", group.program))
        }
        Purpose::Page => Some("a page of memory".to_owned()),
        Purpose::Stopped => Some("being continued, since it was stopped".to_owned()),
        _ => None,
    };
    end.unwrap_or_default()
}

/// Whether waits for the end of a thread ended because another one has ended the process: which thread was waited for is not known.
fn ends_with_process(report: &Report, row: &CauseRow) -> bool {
    let is_end = |waker: &Party| {
        matches!(function(report, waker.api), "exit" | "_exit" | "_Exit" | "quick_exit" | "abort")
    };
    row.wakers.iter().any(is_end)
}

/// The same of a finding; or the file that it is about.
pub(crate) fn blamed_object(report: &Report, blame: &Blame) -> String {
    let object = blame.object.as_ref().map(|of| object(report, blame.process, of));
    let object = object.filter(|object| !object.is_empty());
    object.or_else(|| blame.file.clone()).unwrap_or_default()
}

fn memory(report: &Report, address: &CodeAddress) -> String {
    match address.svma {
        Some(svma) => format!("{}+{svma:#x}", object_name(report, address)),
        None => format!("{:#x}", address.avma),
    }
}

/// Who held or woke, doing what: `worker, in usleep at update_stats convoy.c:16`.
pub(crate) fn party(report: &Report, party: &Party) -> String {
    let who = match (party.kind, party.group) {
        (PartyKind::Thread, Some(group)) => report.groups().rows[group as usize].label.clone(),
        (PartyKind::Thread, None) => "a thread".to_owned(),
        (PartyKind::Process, _) => match &*party.name {
            "" => "another process".to_owned(),
            name => format!("process {name}"),
        },
        (PartyKind::Kernel, _) => "the kernel".to_owned(),
        (PartyKind::Interrupt, _) => "an interrupt".to_owned(),
        (PartyKind::Time, _) => "nobody: time was over".to_owned(),
        (PartyKind::Unknown, _) => "(not known)".to_owned(),
    };
    let doing = party.api.map(|api| report.names.short(api as usize).to_owned());
    let at = site(report, party.process, party.site);
    match (doing, &*at) {
        (None, _) => who,
        (Some(doing), "") => format!("{who}, in {doing}"),
        (Some(doing), at) => format!("{who}, in {doing} at {at}"),
    }
}

/// Waits in words, added up where these are the same, as of waits in different system calls.
pub(crate) struct Told<'r> {
    /// One of them.
    pub(crate) row: &'r CauseRow,
    pub(crate) words: Words,
    /// Their time until the threads ran again, and what of it came after they were woken.
    pub(crate) wait_ns: u64,
    pub(crate) ready_ns: u64,
    pub(crate) waits: u64,
}

/// What tells waits apart for a reader.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Words {
    pub(crate) function: String,
    pub(crate) site: String,
    pub(crate) group: String,
    pub(crate) object: String,
    pub(crate) holder: String,
    pub(crate) waker: String,
}

/// What waits are called, the longest first.
pub(crate) fn told<'r>(report: &'r Report, rows: &[&'r CauseRow]) -> Vec<Told<'r>> {
    let rows = rows.iter().map(|row| Told {
        row,
        words: words(report, row),
        wait_ns: row.wait_ns.0,
        ready_ns: row.ready_ns.0,
        waits: row.waits,
    });
    added_up(rows)
}

fn added_up<'r>(rows: impl Iterator<Item = Told<'r>>) -> Vec<Told<'r>> {
    let mut places = HashMap::new();
    let mut sums: Vec<Told<'_>> = Vec::new();
    for row in rows {
        let place = *places.entry(row.words.clone()).or_insert(sums.len());
        match sums.get_mut(place) {
            Some(sum) => {
                sum.wait_ns = sum.wait_ns.saturating_add(row.wait_ns);
                sum.ready_ns = sum.ready_ns.saturating_add(row.ready_ns);
                sum.waits = sum.waits.saturating_add(row.waits);
            }
            None => sums.push(row),
        }
    }
    sums.sort_by_key(|row| std::cmp::Reverse(row.wait_ns));
    sums
}

fn words(report: &Report, row: &CauseRow) -> Words {
    let first = |parties: &[Party]| parties.first().map(|it| party(report, it)).unwrap_or_default();
    Words {
        function: function(report, row.api).to_owned(),
        site: site(report, row.process, row.site),
        group: report.groups().rows[row.group as usize].label.clone(),
        object: awaited(report, row),
        holder: first(&row.holders),
        waker: first(&row.wakers),
    }
}

/// The last parts of a long name.
pub(crate) fn brief(name: &str) -> &str {
    if name.len() > 40 && name.starts_with('/') { file_name(name) } else { name }
}

#[cfg(test)]
mod tests {
    use chase_analyzer::Ns;

    use super::*;

    /// sqlite3 had four rows of the same function, place, object and waker.
    #[test]
    fn waits_that_nothing_tells_apart_are_one_row() {
        let any = CauseRow {
            group: 0,
            api: None,
            site: None,
            process: 0,
            syscall: None,
            object: WaitObject::None,
            purpose: Purpose::File,
            waits: 0,
            calls: 0,
            wait_ns: Ns(0),
            max_ns: Ns(0),
            ready_ns: Ns(0),
            threads: 1,
            by_thread: Vec::new(),
            holders: Vec::new(),
            wakers: Vec::new(),
        };
        let row = |object: &str, wait_ns, waits| Told {
            row: &any,
            words: Words {
                function: "sqlite3_step".to_owned(),
                site: "sqlite3+0x200c4".to_owned(),
                group: "main".to_owned(),
                object: object.to_owned(),
                holder: String::new(),
                waker: "an interrupt".to_owned(),
            },
            wait_ns,
            ready_ns: wait_ns / 2,
            waits,
        };
        let rows = [row("x.db", 7, 1), row("", 6, 5), row("", 2, 1), row("", 1, 1)];
        let rows = added_up(rows.into_iter());
        let told: Vec<_> = rows
            .iter()
            .map(|row| (&*row.words.object, row.wait_ns, row.ready_ns, row.waits))
            .collect();
        assert_eq!(told, [("", 9, 4, 7), ("x.db", 7, 3, 1)]);
    }
}
