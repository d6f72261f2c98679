//! The two clocks by which time is shown.

use maud::{Markup, html};

use crate::{Error, Report};

/// Which time is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// On the processor, by the object that ran.
    Cpu,
    /// By the library called last, waits included.
    Wall,
}

/// What `render` gives for each clock that there is: the page shows one of them at a time.
pub(super) fn by_clocks(
    report: &Report,
    render: impl Fn(Clock) -> Result<Markup, Error>,
) -> Result<Markup, Error> {
    let by_wall = render(Clock::Wall)?;
    if report.processor.is_none() {
        return Ok(by_wall);
    }
    let by_cpu = render(Clock::Cpu)?;
    Ok(html! { div.of-cpu { (by_cpu) } div.of-wall { (by_wall) } })
}
