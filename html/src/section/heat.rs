//! Heat maps: how long threads, and groups of them, were in which library; by the wall's clock, and, where samples were taken,
//! by the processor's.

use chase_viz::{Cell, Chart, Heading, HeatRow, Sheet, Unit, heat, quantity, share};
use maud::{Markup, html};

use super::clock::{Clock, by_clocks};
use crate::figure::{WIDE, figure, plural};
use crate::model::{Library, Member, Outlier, ThreadGroup};
use crate::{Error, Report};

/// Groups with a picture.
const PICTURES: usize = 8;
/// The least part of the useful time of all threads, unless a thread of the group stands out.
const LEAST_WORK: f64 = 0.01;
/// Threads beyond this are put together, but for outliers.
const ROWS: usize = 64;
/// Rows of what was put together.
const BINS: usize = 32;
/// What is less than this part of the longest is not written into its cell.
const LEAST_TEXT: f64 = 0.001;

impl Clock {
    fn time(self, member: &Member, column: usize) -> f64 {
        let times = match self {
            Self::Cpu => &member.on_cpu_ns,
            Self::Wall => &member.in_libraries_ns,
        };
        f64::from(times.get(column).copied().unwrap_or_default())
    }

    /// What a share is of.
    fn whole(self, member: &Member) -> f64 {
        if self == Self::Cpu { member.life.running_ns } else { member.lifetime_ns }
    }

    fn whole_in_words(self) -> &'static str {
        if self == Self::Cpu { "of its time on the processor" } else { "of its life" }
    }
}

/// Groups that have a picture of their own: those of several threads, and one that is alone.
pub(crate) fn worth_showing(report: &Report) -> impl Iterator<Item = &ThreadGroup> {
    let whole: f64 = report.groups.iter().map(|group| group.useful_ns).sum();
    let wanted = move |group: &&ThreadGroup| {
        let is_compared = group.members.len() > 1 || !has_several(report);
        let has_work = group.useful_ns >= LEAST_WORK * whole;
        is_compared && (has_work || !group.outliers.is_empty())
    };
    report.groups.iter().filter(wanted).take(PICTURES)
}

/// Whether groups can be compared with each other.
pub(crate) fn has_several(report: &Report) -> bool {
    report.groups.len() > 1
}

/// Group × library.
pub(super) fn of_groups(report: &Report) -> Result<Markup, Error> {
    by_clocks(report, |clock| {
        let heading =
            Heading { title: "Thread group × library", subtitle: "time of their threads" };
        let caption = html! {
            @match clock {
                Clock::Cpu => {
                    "How long code of each library, and of the application, ran in the threads of each group, by samples: "
                    "all threads of the group together."
                }
                Clock::Wall => {
                    "How long the threads of each group were in each library, and in the application’s own code, "
                    "waits included: all threads of the group together."
                }
            }
            @if report.groups.len() > BINS { " The groups with most time." }
        };
        figure(&heading, WIDE, &caption, |sheet| draw_groups(report, clock, sheet))
    })
}

/// Thread × library, and what is known of how alike the threads are.
pub(super) fn of_group(report: &Report, group: &ThreadGroup) -> Result<Markup, Error> {
    let title = format!("{}: {}", group.name, plural(group.members.len(), "thread"));
    let chart = by_clocks(report, |clock| {
        if clock == Clock::Cpu && !has_samples(group) {
            return Ok(html! { p.note { "No sample found these threads running." } });
        }
        let heading = Heading { title: &title, subtitle: "time of each thread by library" };
        let caption = html! {
            @match clock {
                Clock::Cpu => {
                    "How long code of each library, and of the application, ran in each thread, by samples. "
                }
                Clock::Wall => {
                    "How long each thread was in each library, and in the application’s own code, waits included. "
                }
            }
            @if group.members.len() > ROWS {
                "Threads are sorted by their part in the library in which they differ most, and put "
                "together: each row is a mean. Outliers have rows of their own. "
            }
            @if !group.outliers.is_empty() {
                "Outliers are in bold: in some function further than 3.5 robust standard deviations from "
                "the median."
            }
        };
        figure(&heading, WIDE, &caption, |sheet| draw_group(report, group, clock, sheet))
    })?;
    Ok(html! {
        h3 { (title) }
        (chart)
        @if !group.outliers.is_empty() {
            ul.outliers { @for outlier in &group.outliers {
                @if let Some(member) = group.members.get(outlier.member) {
                    li { b { (member.name) } ": " (outlier.reason) }
                }
            } }
        }
        @if let Some(note) = &group.note { p.note { (note) } }
        @if group.sub_groups.len() > 1 {
            p { "Kinds of behaviour within the group: "
                @for (at, kind) in group.sub_groups.iter().enumerate() {
                    @if at > 0 { "; " } (kind.name) " (" (plural(kind.threads, "thread")) ")"
                } "."
            }
        }
    })
}

/// Group × library by the wall's clock.
pub(crate) fn draw_all(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    draw_groups(report, Clock::Wall, sheet)
}

/// Thread × library by the wall's clock.
pub(crate) fn draw(
    report: &Report,
    group: &ThreadGroup,
    sheet: &Sheet<'_>,
) -> Result<Chart, Error> {
    draw_group(report, group, Clock::Wall, sheet)
}

fn draw_groups(report: &Report, clock: Clock, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let Some(first) = report.groups.first() else { return Ok(heat(sheet, &[], &[], ("", ""))?) };
    let columns = columns(report, first, clock);
    let time = |group: &ThreadGroup, column: usize| -> f64 {
        group.members.iter().map(|member| clock.time(member, column)).sum()
    };
    let mut shown: Vec<&ThreadGroup> = report.groups.iter().collect();
    if clock == Clock::Cpu {
        let whole = |group: &ThreadGroup| (0..columns.len()).map(|at| time(group, at)).sum::<f64>();
        shown.sort_by(|a, b| whole(b).total_cmp(&whole(a)));
        shown.retain(|group| whole(group) > 0.0);
    }
    shown.truncate(BINS);
    let used = used(shown.iter().flat_map(|group| &group.members), columns.len(), clock);
    let all = shown.iter().flat_map(|g| (0..columns.len()).map(move |column| time(g, column)));
    let most = all.fold(0.0, f64::max);
    let row = |group: &&ThreadGroup| {
        let whole: f64 = group.members.iter().map(|member| clock.whole(member)).sum();
        HeatRow {
            label: group.name.to_string(),
            marked: false,
            cells: used.iter().map(|&at| cell(time(group, at), most, whole, clock)).collect(),
        }
    };
    let rows: Vec<HeatRow> = shown.iter().map(row).collect();
    let columns: Vec<String> = used.iter().map(|&at| columns[at].clone()).collect();
    Ok(heat(sheet, &columns, &rows, ("none", &quantity(most, Unit::Nanoseconds)))?)
}

fn draw_group(
    report: &Report,
    group: &ThreadGroup,
    clock: Clock,
    sheet: &Sheet<'_>,
) -> Result<Chart, Error> {
    let columns = columns(report, group, clock);
    let is_outlier = |member: usize| group.outliers.iter().any(|o: &Outlier| o.member == member);
    let (apart, rest): (Vec<usize>, Vec<usize>) =
        (0..group.members.len()).partition(|&member| is_outlier(member));
    let times = |member: &Member| {
        (0..columns.len()).map(|column| clock.time(member, column)).fold(0.0, f64::max)
    };
    let most = group.members.iter().map(times).fold(0.0, f64::max);
    let used = used(group.members.iter(), columns.len(), clock);
    let row = |members: &[usize], marked| row(group, members, &used, (clock, most), marked);
    let mut rows: Vec<HeatRow> = apart.iter().map(|&member| row(&[member], true)).collect();
    if group.members.len() <= ROWS {
        rows = (0..group.members.len()).map(|m| row(&[m], is_outlier(m))).collect();
    } else {
        let mut rest = rest;
        let widest = widest(group, &rest, columns.len(), clock);
        let time = |&member: &usize| clock.time(&group.members[member], widest);
        rest.sort_by(|a, b| time(b).total_cmp(&time(a)).then(a.cmp(b)));
        rows.extend(rest.chunks(rest.len().div_ceil(BINS)).map(|bin| row(bin, false)));
    }
    let columns: Vec<String> = used.iter().map(|&at| columns[at].clone()).collect();
    Ok(heat(sheet, &columns, &rows, ("none", &quantity(most, Unit::Nanoseconds)))?)
}

/// Whether any of its threads was found running: threads that hardly ran may all have been missed.
fn has_samples(group: &ThreadGroup) -> bool {
    group.members.iter().flat_map(|member| &member.on_cpu_ns).any(|&ns| ns > 0.0)
}

/// The columns in which any of the threads has something.
fn used<'g>(
    members: impl Iterator<Item = &'g Member> + Clone,
    columns: usize,
    clock: Clock,
) -> Vec<usize> {
    let is_used = |&column: &usize| members.clone().any(|m| clock.time(m, column) > 0.0);
    (0..columns).filter(is_used).collect()
}

/// What the columns are called.
fn columns(report: &Report, group: &ThreadGroup, clock: Clock) -> Vec<String> {
    let called = |name: &str, is_application| match is_application {
        true => format!("{name} (application)"),
        false => name.to_owned(),
    };
    if clock == Clock::Cpu {
        // Of the whole run: threads, and groups of them, may have no samples.
        let members = report.groups.iter().flat_map(|group| &group.members);
        let most = members.map(|member| member.on_cpu_ns.len()).max().unwrap_or(0);
        let objects = report.processor.iter().flat_map(|ran| &ran.objects).take(most);
        return objects.map(|object| called(object.name.as_str(), object.is_application)).collect();
    }
    let library = |&number: &usize| {
        let named = |library: &Library| called(library.name.as_str(), library.is_application);
        report.libraries.get(number).map(named).unwrap_or_default()
    };
    group.libraries.iter().map(library).collect()
}

/// The column in which members differ most, by variance.
fn widest(group: &ThreadGroup, members: &[usize], columns: usize, clock: Clock) -> usize {
    let variance = |column: usize| {
        let times = || members.iter().map(|&member| clock.time(&group.members[member], column));
        let mean = times().sum::<f64>() / members.len().max(1) as f64;
        times().map(|time| (time - mean).powi(2)).sum::<f64>()
    };
    let order = |&a: &usize, &b: &usize| variance(a).total_cmp(&variance(b)).then(b.cmp(&a));
    (0..columns).max_by(order).unwrap_or(0)
}

/// A thread, or the mean of several; the longest time has the darkest shade.
fn row(
    group: &ThreadGroup,
    members: &[usize],
    columns: &[usize],
    (clock, most_ns): (Clock, f64),
    marked: bool,
) -> HeatRow {
    let mean = |of: &dyn Fn(&Member) -> f64| {
        let sum: f64 = members.iter().map(|&member| of(&group.members[member])).sum();
        sum / members.len().max(1) as f64
    };
    let whole = mean(&|member| clock.whole(member));
    let cell_of = |column| cell(mean(&|m| clock.time(m, column)), most_ns, whole, clock);
    let label = match members {
        [only] => group.members[*only].name.to_string(),
        several => plural(several.len(), "thread"),
    };
    HeatRow { label, marked, cells: columns.iter().copied().map(cell_of).collect() }
}

/// A time, shaded by its part of the longest, and its share of the thread's whole time.
fn cell(ns: f64, most_ns: f64, whole_ns: f64, clock: Clock) -> Cell {
    let part = if most_ns > 0.0 { (ns / most_ns).min(1.0) } else { 0.0 };
    let time = quantity(ns, Unit::Nanoseconds);
    let detail =
        format!("{time}, {} {}", share(ns.min(whole_ns), whole_ns), clock.whole_in_words());
    let text = if part < LEAST_TEXT { String::new() } else { time };
    Cell { part, text, detail }
}

#[cfg(test)]
mod tests {
    use super::{Clock, LEAST_WORK, Report, columns, draw_groups, of_group, worth_showing};
    use crate::model::{Life, Member, Outlier, Ran, RanObject, ThreadGroup};
    use chase_viz::{Heading, Sheet};

    fn group(name: &str, on_cpu_ns: Vec<f32>) -> ThreadGroup {
        let member = Member {
            name: name.into(),
            lifetime_ns: 1e9,
            life: Life::default(),
            calls: 0,
            in_libraries_ns: Vec::new(),
            on_cpu_ns,
        };
        ThreadGroup {
            name: name.into(),
            members: vec![member],
            libraries: Vec::new(),
            useful_ns: 0.0,
            wait_ns: 0.0,
            balance: None,
            outliers: Vec::new(),
            sub_groups: Vec::new(),
            note: None,
        }
    }

    #[test]
    fn idle_groups_take_no_columns_from_the_others() {
        let object = RanObject {
            name: "libwork.so".into(),
            is_application: false,
            ns: 5e8,
            error_ns: 0.0,
            kernel_ns: None,
            functions: Vec::new(),
        };
        let report = Report {
            processor: Some(Ran { objects: vec![object], ..Ran::default() }),
            groups: vec![group("idle pool", Vec::new()), group("workers", vec![5e8])],
            ..Report::default()
        };
        assert_eq!(columns(&report, &report.groups[0], Clock::Cpu), ["libwork.so"]);
        let sheet = Sheet::alone(Heading { title: "", subtitle: "" });
        let chart = draw_groups(&report, Clock::Cpu, &sheet).expect("a picture");
        assert!(chart.svg().contains("libwork.so") && chart.svg().contains("workers"));
    }

    #[test]
    fn threads_without_samples_have_words_for_a_picture_by_the_processors_clock() {
        let idle = group("idle pool", Vec::new());
        let report = Report { processor: Some(Ran::default()), ..Report::default() };
        let shown = of_group(&report, &idle).expect("a section").into_string();
        assert_eq!(shown.matches("No sample found these threads running.").count(), 1);
        let busy = group("workers", vec![5e8]);
        let shown = of_group(&report, &busy).expect("a section").into_string();
        assert!(!shown.contains("No sample"));
    }

    #[test]
    fn a_group_has_a_picture_if_its_threads_can_be_compared_and_it_works_or_has_outliers() {
        let of = |name: &str, threads: usize, useful_ns: f64| {
            let one = group(name, vec![0.0]);
            ThreadGroup { members: vec![one.members[0].clone(); threads], useful_ns, ..one }
        };
        let outlier = Outlier { member: 0, reason: "slow".into() };
        let groups = vec![
            of("workers", 4, 1e9),
            of("main", 1, 1e9),
            of("idle pool", 4, 1e9 * LEAST_WORK),
            ThreadGroup { outliers: vec![outlier], ..of("odd pool", 4, 0.0) },
        ];
        let names = |report: &Report| -> Vec<String> {
            worth_showing(report).map(|group| group.name.to_string()).collect()
        };
        let mut report = Report { groups, ..Report::default() };
        assert_eq!(names(&report), ["workers", "odd pool"]);
        report.groups.drain(..1);
        report.groups.truncate(1);
        assert_eq!(names(&report), ["main"], "alone, it is all there is");
    }
}
