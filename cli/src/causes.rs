//! Causes of waits, in words.

use chase_analyzer::{CauseRow, CodeAddress, Party, PartyKind, WaitObject};
use chase_symbols::shorten;

use crate::places::{AddressKind, Place, key};
use crate::report::{Report, file_name};

/// Where a call was made: `update_stats convoy.c:14`; empty if that is not known.
pub(crate) fn site(report: &Report, process: usize, site: Option<CodeAddress>) -> String {
    let Some(site) = site else { return String::new() };
    place(report, process, &site).short(object_name(report, &site))
}

/// The source place of a return address.
pub(crate) fn place(report: &Report, process: usize, site: &CodeAddress) -> Place {
    report.places.find(report.files(), process, site, AddressKind::ReturnAddress)
}

fn object_name<'r>(report: &'r Report, address: &CodeAddress) -> &'r str {
    address.object.map_or("", |object| report.names.object(object))
}

/// What was waited for: a variable, an address, a file.
pub(crate) fn object(report: &Report, row: &CauseRow) -> String {
    match &row.object {
        WaitObject::None => String::new(),
        WaitObject::File { name } if name.is_empty() => "a closed file".to_owned(),
        WaitObject::File { name } => name.clone(),
        WaitObject::Memory(address) => {
            variable(report, row.process, address).unwrap_or_else(|| memory(report, address))
        }
    }
}

/// The variable at an address of memory, by the symbols of its file.
pub(crate) fn variable(report: &Report, process: usize, address: &CodeAddress) -> Option<String> {
    let object = report.analysis.objects.get(address.object? as usize)?;
    let key = key(object, report.loaded.images.get(process));
    let (name, offset) = report.places.symbolizer.variable(&key, address.svma?)?;
    let name = shorten(&name);
    Some(if offset == 0 { name.into_owned() } else { format!("{name}+{offset:#x}") })
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

/// What made threads of `group` wait longest in `api`.
pub(crate) fn longest(report: &Report, group: u32, api: Option<u32>) -> Option<&CauseRow> {
    report.causes().iter().find(|row| row.group == group && row.api == api)
}

/// The last parts of a long name.
pub(crate) fn brief(name: &str) -> &str {
    if name.len() > 40 && name.starts_with('/') { file_name(name) } else { name }
}
