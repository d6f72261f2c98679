//! System calls: which library calls made them, how many per call, errors, wall and CPU time.

mod brief;
mod tables;

use anyhow::bail;
use chase_analyzer::{Analysis, OfApi, OfLibrary, OfThread, Selection, SyscallRow};

use super::apis::is_wanted;
use super::{Show, legend, threads};
use crate::args::{ApiFilter, LibFilter, SyscallsBy, ThreadFilter, matches};
use crate::causes;
use crate::machine::Rows;
use crate::names::Names;
use crate::report::Report;
use crate::terminal::{Look, Terminal, clean};

pub(super) use brief::{brief, for_summary, headline, not_seen};
pub(super) use tables::ratio;

/// What stands for the code outside of any library call.
const OUTSIDE: &str = "(outside library calls)";
/// What stands for what chase could not record.
const UNRECORDED: &str = "(not recorded)";

/// The name for calls that no library call made, or none that was timed.
fn nobody(analysis: &Analysis, is_recorded: bool) -> &'static str {
    match is_recorded {
        true if analysis.only_counts() => causes::OUTSIDE,
        true => OUTSIDE,
        false => UNRECORDED,
    }
}

pub(super) struct Syscalls<'a> {
    lib: &'a LibFilter,
    api: &'a ApiFilter,
    thread: &'a ThreadFilter,
    by: Option<SyscallsBy>,
}

/// The system calls of one thread, or of all that were analysed.
struct Part<'r> {
    analysis: &'r Analysis,
    names: &'r Names,
}

/// Whether the companion saw anything of the run.
pub(super) fn is_there(report: &Report) -> bool {
    report.analysis.syscalls.totals.calls > 0
}

impl<'a> Syscalls<'a> {
    /// # Errors
    ///
    /// If there are no system calls, with what to do about it.
    pub(super) fn new(
        report: &Report,
        lib: &'a LibFilter,
        api: &'a ApiFilter,
        thread: &'a ThreadFilter,
        by: Option<SyscallsBy>,
    ) -> anyhow::Result<Self> {
        if !is_there(report) {
            bail!("{}", why_none(report));
        }
        Ok(Self { lib, api, thread, by })
    }

    fn is_filtered(&self) -> bool {
        !self.lib.libs.is_empty() || !self.api.apis.is_empty()
    }

    /// Rows by API that the filters let pass. What a function does only through others is shown
    /// where it was asked for.
    fn by_api<'r>(&self, part: &Part<'r>) -> Vec<&'r SyscallRow<OfApi>> {
        let wanted = |row: &&SyscallRow<OfApi>| match row.of.api {
            None => !self.is_filtered(),
            Some(_) if row.measures.calls == 0 && self.api.apis.is_empty() => false,
            Some(api) => is_wanted(part.analysis, part.names, api as usize, self.lib, self.api),
        };
        part.analysis.syscalls.by_api.iter().filter(wanted).collect()
    }

    fn by_library<'r>(&self, part: &Part<'r>) -> Vec<&'r SyscallRow<OfLibrary>> {
        let wanted = |row: &&SyscallRow<OfLibrary>| match row.of.object {
            None => !self.is_filtered(),
            Some(_) if row.measures.calls == 0 && self.lib.libs.is_empty() => false,
            Some(number) => {
                let object = part.analysis.objects.get(number as usize);
                let path = object.map_or("", |object| &object.path);
                matches(&self.lib.libs, &[&row.of.library, path])
            }
        };
        part.analysis.syscalls.by_library.iter().filter(wanted).collect()
    }

    fn by_thread<'r>(&self, report: &'r Report) -> Vec<&'r SyscallRow<OfThread>> {
        let wanted = |row: &&SyscallRow<OfThread>| {
            matches(&self.thread.threads, &[&row.of.tid.to_string(), &row.of.name])
        };
        report.analysis.syscalls.by_thread.iter().filter(wanted).collect()
    }

    /// Calls `show` with all threads, or with each thread asked for and its name.
    fn parts(
        &self,
        report: &Report,
        mut show: impl FnMut(Option<String>, &Part<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.thread.threads.is_empty() {
            let (analysis, names) = (&report.analysis, &report.names);
            return show(None, &Part { analysis, names });
        }
        for thread in threads::rows(report, self.thread) {
            let selection = Selection::Thread(thread.process, thread.thread);
            let analysis = &Analysis::new(&report.loaded.images, selection);
            let names = &Names::new(analysis);
            let title = format!("{} (TID {})", clean(&thread.name), thread.tid);
            show(Some(title), &Part { analysis, names })?;
        }
        Ok(())
    }

    /// The tables that are shown when none is asked for.
    fn shown(&self) -> Vec<SyscallsBy> {
        let by_thread = !self.thread.threads.is_empty();
        match self.by {
            Some(by) => vec![by],
            None if by_thread => {
                vec![SyscallsBy::Thread, SyscallsBy::Api, SyscallsBy::Category, SyscallsBy::Error]
            }
            None if self.is_filtered() => {
                vec![SyscallsBy::Api, SyscallsBy::Category, SyscallsBy::Error]
            }
            None => vec![
                SyscallsBy::Syscall,
                SyscallsBy::Api,
                SyscallsBy::Library,
                SyscallsBy::Category,
                SyscallsBy::Error,
            ],
        }
    }
}

impl Show for Syscalls<'_> {
    const NAME: &'static str = "syscalls";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let mut out = headline(report, terminal) + "\n";
        let shown = self.shown();
        if shown.contains(&SyscallsBy::Thread) {
            out.push('\n');
            out.push_str(&tables::threads(report, &self.by_thread(report), terminal, top));
        }
        self.parts(report, |title, part| {
            if let Some(title) = title {
                out.push_str(&format!("\n{}\n", terminal.paint(Look::Strong, &title)));
            }
            for by in &shown {
                let text = tables::text(self, part, *by, terminal, top);
                out.push_str(if text.is_empty() { "" } else { "\n" });
                out.push_str(&text);
            }
            Ok(())
        })?;
        let missing = not_seen(report);
        if !missing.is_empty() {
            let lines = missing.iter().map(|line| format!("  {}\n", clean(line)));
            let heading = terminal.paint(Look::Warning, "Not seen");
            out.push_str(&format!("\n{heading}\n{}", lines.collect::<String>()));
        }
        out.push_str(&legend(terminal, &tables::TERMS));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        tables::machine(self, report, top)
    }
}

/// What it takes to see system calls.
const NEEDS: &str = "They are seen by chase-companion, beside libchase.so, \
     which needs to be root (or, once, `setcap cap_bpf,cap_perfmon+ep chase-companion`) and a \
     kernel with /sys/kernel/btf/vmlinux. With CHASE_SYSCALLS=require a program does not start \
     without, and says why";

/// Why there are no system calls, and what to do.
fn why_none(report: &Report) -> String {
    let images = &report.loaded.images;
    let path = report.path.display();
    let failed = |failure: &chase_analyzer::Failure| {
        failure.path.extension().is_some_and(|extension| extension == "syscalls")
    };
    if let Some(failure) = report.loaded.failures.iter().find(|failure| failed(failure)) {
        return format!(
            "no system calls in {path}: {} can't be used: {}",
            failure.path.display(),
            failure.cause
        );
    }
    if report.analysis.on_cpu.user_only {
        return format!(
            "no system calls in {path}: without privilege, the companion took samples alone. {NEEDS}"
        );
    }
    if images.iter().any(|image| image.syscalls.is_some()) {
        return format!("no system calls in {path}: its .syscalls files hold none (yet)");
    }
    // As the recorded program noted it.
    let noted = images.iter().find_map(|image| image.recording.meta_value("syscalls"));
    let why = match noted.as_deref() {
        Some("on") => "they were to be recorded, but the companion wrote no .syscalls file \
            beside the recording: was it killed, or the file deleted?"
            .to_owned(),
        Some(reason) => format!("they were not recorded: {reason}"),
        None => "there is no .syscalls file beside the recording".to_owned(),
    };
    format!("no system calls in {path}: {why}. {NEEDS}")
}
