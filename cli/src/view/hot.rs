//! The functions in which the processor was, whether called through a library's door or not.

use std::collections::HashMap;

use anyhow::bail;
use chase_analyzer::{Ns, OnCpuAddress, OnCpuObject, SampledTime};
use chase_html::{Ran, RanFunction, RanObject};
use chase_symbols::without_suffix;
use serde_json::Value;

use super::sampled::{self, CPU_LEGEND, KERNEL};
use super::{Show, left_out, legend};
use crate::args::{LibFilter, matches};
use crate::machine::{self, Rows};
use crate::names::with_parameters;
use crate::places::AddressKind;
use crate::report::{Report, file_name};
use crate::terminal::{Align, Cell, Look, Table, Terminal, elapsed};

pub(super) struct Hot<'a> {
    pub(super) lib: &'a LibFilter,
}

/// One function.
struct Function {
    /// As [`function_or_start`](crate::places::Place::function_or_start) has it.
    name: Option<String>,
    shown: String,
    is_named: bool,
    object: u32,
    /// Of the address with most samples.
    file: Option<String>,
    line: Option<u32>,
    most: u64,
    time: SampledTime,
}

/// What samples say of the functions of all objects, for the page; `None` where none were taken.
pub(super) fn ran(report: &Report) -> Option<Ran> {
    let on_cpu = &report.analysis.on_cpu;
    if !sampled::is_sampled(report) {
        return None;
    }
    let mut functions: HashMap<(u32, Option<String>), Function> = HashMap::new();
    for row in &on_cpu.addresses {
        add(&mut functions, report, row);
    }
    let mut by_object: HashMap<u32, Vec<Function>> = HashMap::new();
    for function in sorted(functions) {
        by_object.entry(function.object).or_default().push(function);
    }
    let mut object = |row: &OnCpuObject| RanObject {
        name: report.names.object(row.object).into(),
        is_application: report.analysis.objects[row.object as usize].executable,
        ns: row.time.on_cpu_ns.as_f64(),
        error_ns: row.time.on_cpu_ci95_ns.as_f64(),
        kernel_ns: row.time.on_cpu_kernel_ns.map(Ns::as_f64),
        functions: by_object
            .remove(&row.object)
            .unwrap_or_default()
            .iter()
            .map(|function| RanFunction {
                name: (&*function.shown).into(),
                ns: function.time.on_cpu_ns.as_f64(),
                line: function.hottest_line().into(),
            })
            .collect(),
    };
    Some(Ran {
        samples: on_cpu.samples,
        on_cpu_ns: on_cpu.whole_ns().as_f64(),
        not_sampled_ns: on_cpu.not_sampled_ns.as_f64(),
        user_only: on_cpu.user_only,
        unwatched: sampled::unwatched(report),
        objects: on_cpu.objects.iter().map(&mut object).collect(),
    })
}

/// Longest first, those of one name with their parameters.
fn sorted(functions: HashMap<(u32, Option<String>), Function>) -> Vec<Function> {
    let mut functions: Vec<_> = functions.into_values().collect();
    let names = |function: &Function| {
        (function.object, function.shown.clone(), function.name.clone().unwrap_or_default())
    };
    let told = with_parameters(&functions.iter().map(names).collect::<Vec<_>>());
    for (function, told) in functions.iter_mut().zip(told) {
        function.shown = told.unwrap_or_else(|| function.shown.clone());
    }
    functions.sort_by(|a, b| {
        (b.time.on_cpu_ns, a.object, &a.name).cmp(&(a.time.on_cpu_ns, b.object, &b.name))
    });
    functions
}

impl Function {
    /// Empty if it is not known.
    fn hottest_line(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
            _ => String::new(),
        }
    }
}

impl Hot<'_> {
    /// Functions, longest first.
    fn functions(&self, report: &Report) -> anyhow::Result<Vec<Function>> {
        if !sampled::is_sampled(report) {
            bail!("no samples of what ran were taken: {}", sampled::why_none(report));
        }
        let mut functions: HashMap<(u32, Option<String>), Function> = HashMap::new();
        for row in &report.analysis.on_cpu.addresses {
            let object = &report.analysis.objects[row.object as usize];
            if !matches(&self.lib.libs, &[&object.name, &object.path]) {
                continue;
            }
            add(&mut functions, report, row);
        }
        Ok(sorted(functions))
    }
}

/// Which function of the source this is: copies that a compiler makes of one are the same. Of names in generated code, which is in
/// no object, nothing is known.
fn in_source(name: String, is_in_object: bool) -> String {
    if is_in_object { without_suffix(&name).to_owned() } else { name }
}

fn add(
    functions: &mut HashMap<(u32, Option<String>), Function>,
    report: &Report,
    row: &OnCpuAddress,
) {
    let place =
        report.places.find(report.files(), row.process, &row.address, AddressKind::Function);
    // The line is that of the code itself, which may be inlined from elsewhere.
    let innermost = place.inlined.first();
    let (file, line) = innermost
        .map_or((place.file.clone(), place.line), |inlined| (inlined.file.clone(), inlined.line));
    let library = report.names.object(row.object);
    let name = place.function_or_start(library).map(|name| in_source(name, place.object.is_some()));
    let function = functions.entry((row.object, name.clone())).or_insert(Function {
        name,
        is_named: place.function.is_some(),
        shown: place.function_in_short(library),
        object: row.object,
        file: None,
        line: None,
        most: 0,
        time: SampledTime::default(),
    });
    if row.time.samples > function.most {
        function.most = row.time.samples;
        (function.file, function.line) = (file, line);
    }
    let time = &mut function.time;
    time.samples += row.time.samples;
    time.on_cpu_ns.0 += row.time.on_cpu_ns.0;
    time.on_cpu_kernel_ns =
        row.time.on_cpu_kernel_ns.map(|ns| Ns(ns.0 + time.on_cpu_kernel_ns.unwrap_or_default().0));
    time.on_cpu_ci95_ns = report.analysis.on_cpu.ci95_ns(time.samples);
}

impl Show for Hot<'_> {
    const NAME: &'static str = "hot";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let functions = self.functions(report)?;
        let mut table = Table::new([
            ("Function", Align::Name),
            ("Library", Align::Name),
            (sampled::CPU, Align::Number),
            (KERNEL, Align::Number),
            ("time", Align::Number),
            ("hottest line", Align::Text),
        ])
        .may_drop([KERNEL, "hottest line"]);
        for function in functions.iter().take(top) {
            let look = if function.is_named { Look::Plain } else { Look::Faint };
            table.row([
                Cell::new(&*function.shown, look),
                Cell::new(report.names.object(function.object), Look::Faint),
                sampled::share(report, Some(function.time)).into(),
                sampled::kernel(report, Some(function.time)).into(),
                elapsed(function.time.on_cpu_ns.0).into(),
                function.hottest_line().into(),
            ]);
        }
        let mut out = table.render(terminal);
        out.push_str(&left_out(functions.len(), top, "functions"));
        out.push_str(&legend(terminal, &[CPU_LEGEND]));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let functions = self.functions(report)?;
        let row = |function: &Function| {
            let object = &report.analysis.objects[function.object as usize];
            let more: [(&str, Value); 6] = [
                ("function", function.name.clone().into()),
                ("object", function.object.into()),
                ("library", object.name.clone().into()),
                ("path", object.path.clone().into()),
                ("file", function.file.clone().into()),
                ("line", function.line.into()),
            ];
            machine::row(&function.time, more)
        };
        let rows = functions.iter().take(top).map(row).collect::<Result<_, _>>()?;
        let columns = [
            "function",
            "library",
            "path",
            "samples",
            "on_cpu_ns",
            "on_cpu_kernel_ns",
            "on_cpu_ci95_ns",
            "file",
            "line",
        ];
        Ok(vec![Rows { name: "functions", columns: columns.to_vec(), rows }])
    }
}

#[cfg(test)]
mod tests {
    use super::in_source;

    /// `copy` and `copy.part.0` were two rows, both shown as `copy`.
    #[test]
    fn copies_of_a_function_are_one() {
        let of = |name: &str, is_in_object| in_source(name.to_owned(), is_in_object);
        assert_eq!(of("copy.part.0", true), of("copy", true));
        assert_eq!(of("f(int) [clone .cold]", true), of("f(int)", true));
        assert_ne!(of("f(int)", true), of("f(long)", true));
        assert_eq!(of("made.cold", false), "made.cold");
    }
}
