//! Whether tables of the same run say the same: what one has by function, another by thread, and a third as a sum.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Sentences, list, number, slack, sum};

/// Sums of fields by a key.
type Sums = BTreeMap<u64, BTreeMap<&'static str, f64>>;

/// Fields that tables by context, by thread and by function have alike. Times may differ by rounding, counts not.
const OF_CALLS: [&str; 4] = ["calls", "self_ns", "wait_ns", "preempted_ns"];

/// All differences between the tables that the document has.
pub(super) fn differences(document: &Value, found: &mut Sentences) {
    by_function(document, found);
    of_threads(document, found);
    of_libraries(document, found);
    of_groups(document, found);
    waits(document, found);
    tails(document, found);
    on_cpu(document, found);
    syscalls(document, found);
    causes(document, found);
    path(document, found);
}

fn sums<'v>(
    rows: impl Iterator<Item = &'v Value>,
    key: &str,
    fields: &'static [&'static str],
) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        let Some(key) = row[key].as_u64() else { continue };
        let of_key = sums.entry(key).or_default();
        for &field in fields {
            *of_key.entry(field).or_default() += number(row, field).unwrap_or(0.0);
        }
    }
    sums
}

/// Functions by number, with the fields that they have themselves.
fn functions(document: &Value) -> Sums {
    let numbered = list(document, "apis").iter().zip(0..).map(|(row, at)| {
        // Where filters leave rows out, each says its number.
        let fields = OF_CALLS.iter().map(|&field| (field, number(row, field).unwrap_or(0.0)));
        (row["api"].as_u64().unwrap_or(at), fields.collect())
    });
    numbered.collect()
}

/// Holds sums by function against the functions' own figures; `rows` is how many were added up, at most.
fn compare(what: &str, parts: &Sums, whole: &Sums, rows: usize, found: &mut Sentences) {
    for (api, of_parts) in parts {
        let Some(of_whole) = whole.get(api) else {
            found.push(format!("{what}: no function has the number {api}"));
            continue;
        };
        for (field, &part) in of_parts {
            let all = of_whole.get(field).copied().unwrap_or(0.0);
            let slack = if field.ends_with("_ns") { slack(all) + rows as f64 } else { 0.0 };
            if (part - all).abs() > slack {
                found.push(format!("{what}: {field} of function {api} is {part}, not {all}"));
            }
        }
    }
}

fn by_function(document: &Value, found: &mut Sentences) {
    let functions = functions(document);
    if functions.is_empty() {
        return;
    }
    for name in ["contexts", "callers"] {
        let rows = list(document, name);
        if !rows.is_empty() {
            let by_function = sums(rows.iter(), "api", &OF_CALLS);
            compare(name, &by_function, &functions, rows.len(), found);
        }
    }
    let threads = list(document, "threads");
    if !threads.is_empty() {
        let rows = || threads.iter().flat_map(|thread| list(thread, "apis"));
        let by_function = sums(rows(), "api", &OF_CALLS);
        compare("threads", &by_function, &functions, rows().count(), found);
    }
    let groups = list(document, "groups");
    if !groups.is_empty() {
        let rows = || groups.iter().flat_map(|group| list(group, "apis"));
        let by_function = sums(rows(), "api", &["calls", "wait_ns"]);
        compare("groups", &by_function, &functions, rows().count(), found);
    }
}

/// A thread's functions are what it did in library calls; it lived while the run lasted.
fn of_threads(document: &Value, found: &mut Sentences) {
    let wall = number(document, "span_ns");
    for thread in list(document, "threads") {
        let who = || format!("thread {} {}", thread["tid"], thread["name"]);
        let rows = list(thread, "apis");
        for field in OF_CALLS {
            let Some(all) = number(thread, field) else { continue };
            let parts = sum(rows, field);
            let allowed = if field == "calls" { 0.0 } else { slack(all) + rows.len() as f64 };
            if !rows.is_empty() && (parts - all).abs() > allowed {
                found.push(format!("{}: {field} of its functions is {parts}, not {all}", who()));
            }
        }
        let times = ["start_ns", "end_ns", "lifetime_ns"].map(|field| number(thread, field));
        if let [Some(start), Some(end), Some(lifetime)] = times {
            if (end - start - lifetime).abs() > 1.0 {
                found.push(format!("{}: {start} to {end} are not {lifetime}", who()));
            }
            if wall.is_some_and(|wall| end > wall + 1.0) {
                found.push(format!("{}: lives until {end}, the run until {wall:?}", who()));
            }
        }
    }
}

/// A library's row is the sum of its functions', and of own code that is at home there.
fn of_libraries(document: &Value, found: &mut Sentences) {
    let apis = list(document, "apis");
    let libraries = list(document, "libraries");
    if apis.is_empty() || libraries.is_empty() {
        return;
    }
    let by_object = sums(apis.iter(), "object", &["calls", "self_ns", "blocked_ns", "runnable_ns"]);
    for row in libraries.iter().filter(|row| row["kind"] == "library") {
        let object = row["object"].as_u64().unwrap_or(u64::MAX);
        let none = BTreeMap::new();
        let parts = by_object.get(&object).unwrap_or(&none);
        let part = |field: &str| parts.get(field).copied().unwrap_or(0.0);
        let all = |field: &str| number(row, field).unwrap_or(0.0);
        let own = all("self_ns") - all("own_code_ns");
        let allowed = slack(own) + apis.len() as f64;
        if part("calls") != all("calls") || (part("self_ns") - own).abs() > allowed {
            found.push(format!("{}: its functions are {parts:?}, not {row}", row["name"]));
        }
        for field in ["blocked_ns", "runnable_ns"] {
            // Own code that is at home there waits, too.
            if number(row, field).is_some_and(|all| part(field) > all + allowed) {
                found.push(format!("{}: {field} of its functions is {}", row["name"], part(field)));
            }
        }
    }
    for field in ["blocked_ns", "runnable_ns"] {
        let known =
            libraries.iter().all(|row| !row[field].is_null() || row["kind"] == "unattributed");
        let all = number(&document["totals"], field).filter(|_| known);
        let parts = sum(libraries, field);
        if all.is_some_and(|all| parts > all + slack(all)) {
            found.push(format!("libraries' {field} are {parts}, of {all:?}"));
        }
    }
    // What is a part of the calls' time was cut where that is an estimate; what was measured was not.
    for row in apis {
        for (part, whole) in [("wait_ns", "blocked_ns"), ("preempted_ns", "runnable_ns")] {
            let (Some(part_ns), Some(whole_ns)) = (number(row, part), number(row, whole)) else {
                continue;
            };
            if part_ns > whole_ns + slack(whole_ns) {
                let what = format!("{part} is {part_ns}, of {whole} {whole_ns}");
                found.push(format!("{}: {what}", row["symbol"]));
            }
        }
    }
}

/// All threads are in one group each.
fn of_groups(document: &Value, found: &mut Sentences) {
    let groups = list(document, "groups");
    let totals = &document["totals"];
    if groups.is_empty() || totals["threads"].as_u64().is_none() {
        return;
    }
    let waits = |row: &Value| {
        ["wait_ns", "application_wait_ns", "unattributed_wait_ns"]
            .iter()
            .filter_map(|field| number(row, field))
            .sum::<f64>()
    };
    let rows: usize = groups.iter().map(|group| list(group, "members").len()).sum();
    for (field, all) in [
        ("threads", number(totals, "threads").unwrap_or(0.0)),
        ("calls", number(totals, "calls").unwrap_or(0.0)),
        ("lifetime_ns", number(totals, "lifetime_ns").unwrap_or(0.0)),
        ("application_ns", number(totals, "application_ns").unwrap_or(0.0)),
        ("library_ns", number(totals, "library_ns").unwrap_or(0.0)),
        ("wait_ns", waits(totals)),
    ] {
        let parts = sum(groups, field);
        let allowed = if field.ends_with("_ns") { slack(all) + rows as f64 } else { 0.0 };
        if (parts - all).abs() > allowed {
            found.push(format!("groups' {field} are {parts}, not {all}"));
        }
    }
    for group in groups {
        let who = || group["label"].to_string();
        if list(group, "members").len() as u64 != group["threads"].as_u64().unwrap_or(0) {
            found.push(format!("{}: not as many members as threads", who()));
        }
        for field in ["lifetime", "useful"] {
            let spread = ["min_ns", "median_ns", "max_ns"].map(|at| number(&group[field], at));
            if let [Some(min), Some(median), Some(max)] = spread
                && !(min <= median && median <= max)
            {
                found.push(format!("{}: {field} {min}, {median}, {max}", who()));
            }
        }
    }
}

/// What threads wait for, by function, by cause, and of the threads that matter.
fn waits(document: &Value, found: &mut Sentences) {
    let totals = &document["totals"];
    let all = sum(std::slice::from_ref(totals), "wait_ns")
        + number(totals, "application_wait_ns").unwrap_or(0.0)
        + number(totals, "unattributed_wait_ns").unwrap_or(0.0);
    let threads = number(totals, "threads").unwrap_or(0.0);
    let tables: [&[&str]; 2] = [&["waits"], &["blocked", "idle"]];
    for names in tables {
        let rows: Vec<&Value> = names.iter().flat_map(|name| list(document, name)).collect();
        let parts: f64 = rows.iter().filter_map(|row| number(row, "wait_ns")).sum();
        let counted = names.iter().any(|name| document[*name].is_array());
        if counted && (parts - all).abs() > slack(all) + rows.len() as f64 + threads * 100.0 {
            found.push(format!("{} add up to {parts}, not {all}", names.join(" and ")));
        }
        for row in rows {
            let (most, of) = (number(&row["max"], "ns"), number(row, "wait_ns"));
            if most.zip(of).is_some_and(|(most, of)| most > of + 1.0) {
                found.push(format!("{}: one thread waited {most:?} of {of:?}", names.join("/")));
            }
        }
    }
}

/// The calls of a function, by group: of those that ended, and none longer than the longest.
fn tails(document: &Value, found: &mut Sentences) {
    let apis: BTreeMap<u64, &Value> = list(document, "apis")
        .iter()
        .zip(0..)
        .map(|(row, at)| (row["api"].as_u64().unwrap_or(at), row))
        .collect();
    let rows = list(document, "tails");
    for (api, parts) in sums(rows.iter(), "api", &["calls"]) {
        let Some(row) = apis.get(&api) else { continue };
        let all = number(row, "calls").unwrap_or(0.0);
        if parts["calls"] > all {
            found.push(format!("tails: {} calls of {}, of {all}", parts["calls"], row["symbol"]));
        }
    }
    for tail in rows {
        let Some(row) = tail["api"].as_u64().and_then(|api| apis.get(&api)) else { continue };
        let (most, longest) = (number(tail, "max_ns"), number(row, "max_ns"));
        if most.zip(longest).is_some_and(|(most, longest)| most > longest) {
            found.push(format!("tails: {} took {most:?}, of {longest:?}", row["symbol"]));
        }
        let calls = number(tail, "calls").unwrap_or(0.0);
        let above = number(tail, "calls_above_p99").unwrap_or(0.0);
        let in_threads = sum(list(tail, "threads"), "calls_above_p99");
        if above > calls || in_threads > above {
            found.push(format!("tails: {in_threads} of {above} of {calls}: {}", row["symbol"]));
        }
    }
}

/// Samples: by thread, and by function of any code.
fn on_cpu(document: &Value, found: &mut Sentences) {
    let all = &document["on_cpu"];
    let Some(whole) = number(all, "on_cpu_ns").filter(|_| all["samples"] != 0) else { return };
    // Some processes may not have been watched, or only in user space.
    let processes = list(document, "processes");
    let is_watched = |thread: &&Value| {
        let process = thread["process"].as_u64().and_then(|at| processes.get(at as usize));
        process.is_some_and(|process| process["syscalls"] == "complete")
    };
    let threads = list(document, "threads").iter().filter(is_watched);
    let threads: f64 = threads.filter_map(|row| number(row, "on_cpu_ns")).sum();
    // (A thread whose id another one had, too, has only what it knows itself.)
    if threads > whole * 1.01 + slack(whole) {
        found.push(format!("threads were on the processor for {threads}, of {whole}"));
    }
    let functions = list(document, "functions");
    if functions.is_empty() {
        return;
    }
    let by_object = sums(functions.iter(), "object", &["samples", "on_cpu_ns"]);
    for row in list(all, "objects") {
        let Some(of_functions) = row["object"].as_u64().and_then(|at| by_object.get(&at)) else {
            found.push(format!("{}: no function of it", row["name"]));
            continue;
        };
        let ns = number(row, "on_cpu_ns").unwrap_or(0.0);
        let apart = (of_functions["on_cpu_ns"] - ns).abs();
        let samples = number(row, "samples").unwrap_or(0.0);
        if of_functions["samples"] != samples || apart > slack(ns) + functions.len() as f64 {
            found.push(format!("{}: its functions are {of_functions:?}, not {row}", row["name"]));
        }
    }
}

/// System calls: by thread they take no more than the thread has; by function no more than the function.
fn syscalls(document: &Value, found: &mut Sentences) {
    let of_analysis = &document["syscalls"];
    let table = |name: &str| -> &[Value] {
        let in_analysis = list(of_analysis, name);
        match in_analysis.is_empty() {
            true => list(document, &format!("syscalls_{name}")),
            false => in_analysis,
        }
    };
    let tables = ["by_api", "by_library", "by_context", "by_category", "by_thread"]
        .map(|name| (name, table(name)));
    for field in ["calls", "errors", "restarts", "unfinished", "total_ns", "bytes"] {
        let sums = tables.iter().filter(|(_, rows)| !rows.is_empty());
        let sums: Vec<(&str, f64)> = sums.map(|(name, rows)| (*name, sum(rows, field))).collect();
        let Some(&(first, all)) = sums.first() else { break };
        for &(name, other) in &sums[1..] {
            let allowed = if field == "total_ns" { slack(all) } else { 0.0 };
            if (other - all).abs() > allowed {
                found.push(format!("system calls' {field}: {all} {first}, {other} {name}"));
            }
        }
    }
    for row in tables.iter().flat_map(|(_, rows)| rows.iter()) {
        let by_error = sum(list(row, "by_error"), "count");
        if by_error > number(row, "errors").unwrap_or(0.0) {
            found.push(format!("{} errors of system calls in {row}", by_error));
        }
        let (most, all) = (number(row, "max_ns"), number(row, "total_ns"));
        if most.zip(all).is_some_and(|(most, all)| most > all + 1.0) {
            found.push(format!("a system call of {most:?} ns among {all:?}: {row}"));
        }
    }
}

/// Waits as the kernel saw them, and who ended them.
fn causes(document: &Value, found: &mut Sentences) {
    for name in ["causes", "locks"] {
        for row in list(document, name) {
            let Some(all) = number(row, "wait_ns") else { continue };
            for part in ["max_ns", "ready_ns"] {
                if number(row, part).is_some_and(|part| part > all) {
                    found.push(format!("{name}: {part} of {}: {row}", row["wait_ns"]));
                }
            }
            for parties in ["holders", "wakers"] {
                let parts = sum(list(row, parties), "wait_ns");
                if parts > all + slack(all) {
                    found.push(format!("{name}: {parties} for {parts} of {all}: {row}"));
                }
            }
        }
    }
}

/// The parts of the critical path are as long as the run, and its steps adjoin.
fn path(document: &Value, found: &mut Sentences) {
    let Some(wall) = number(document, "wall_ns") else { return };
    let parts = list(document, "parts");
    let all = sum(parts, "ns");
    if !parts.is_empty() && (all - wall).abs() > slack(wall) {
        found.push(format!("the critical path takes {all}, the run {wall}"));
    }
    for finding in list(document, "findings") {
        if number(finding, "saves_ns").is_some_and(|saves| saves > wall + slack(wall)) {
            found.push(format!("{} saves more than the run took", finding["kind"]));
        }
    }
}

/// Times that were measured in two ways, and so may differ a little: system calls of a thread take no more than it has, and all
/// causes of waits no more than the waits.
pub(super) fn of_clocks(document: &Value, found: &mut Sentences) {
    let by_thread_rows = match list(&document["syscalls"], "by_thread") {
        [] => list(document, "syscalls_by_thread"),
        rows => rows,
    };
    let of_thread = |row: &Value| Some((row["process"].as_u64()?, row["thread"].as_u64()?));
    let mut by_thread: BTreeMap<(u64, u64), [f64; 2]> = BTreeMap::new();
    for row in by_thread_rows {
        let Some(key) = of_thread(row) else { continue };
        let sums = by_thread.entry(key).or_default();
        sums[0] += number(row, "off_cpu_ns").unwrap_or(0.0);
        sums[1] += number(row, "cpu_ns").unwrap_or(0.0);
    }
    for thread in list(document, "threads").iter().filter(|row| !row["blocked_ns"].is_null()) {
        let Some(&[off, on]) = of_thread(thread).and_then(|key| by_thread.get(&key)) else {
            continue;
        };
        let away = number(thread, "blocked_ns").unwrap_or(0.0)
            + number(thread, "runnable_ns").unwrap_or(0.0);
        let ran = number(thread, "on_cpu_ns").unwrap_or(f64::INFINITY);
        let lifetime = number(thread, "lifetime_ns").unwrap_or(0.0);
        let allowed = super::CLOCKS.0 * lifetime + super::CLOCKS.1;
        if off > away + allowed || on > ran + allowed {
            let all = format!("{off} off and {on} on the processor, of {away} and {ran}");
            found.push(format!("thread {}: system calls are {all}", thread["tid"]));
        }
    }
    // A cause has what follows its wait as well, until the thread runs.
    let rows = list(document, "causes");
    let causes = sum(rows, "wait_ns") - sum(rows, "ready_ns");
    let blocked = number(&document["totals"], "blocked_ns");
    if let Some(all) =
        blocked.filter(|all| causes > all * (1.0 + super::CLOCKS.0) + super::CLOCKS.1)
    {
        found.push(format!("causes of {causes} ns of waits, of {all}"));
    }
}
