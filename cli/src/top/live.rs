//! The terminal: taken, and given back whatever happens.

use std::fs::File;
use std::io::{IsTerminal, stdin};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use super::screen::{Screen, Wish};
use super::watch::{Look, Watch};
use crate::args::TopTable;

/// Signals are noticed within this time.
const STEP: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(60);

/// Gives the terminal back when it goes.
struct Taken(DefaultTerminal);

impl Taken {
    /// From here on, a panic gives it back, too.
    fn new() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| {
            // Some of it may have been done.
            let _ = ratatui::try_restore();
        });
        Ok(Self(terminal.context("can't use the terminal (--once needs none)")?))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Of a terminal that is gone, nobody sees that.
        let _ = ratatui::try_restore();
    }
}

/// Where keys come from.
struct Keys(OwnedFd);

impl Keys {
    fn new() -> std::io::Result<Self> {
        let stdin = stdin();
        Ok(Self(match stdin.is_terminal() {
            true => stdin.as_fd().try_clone_to_owned()?,
            false => File::open("/dev/tty")?.into(),
        }))
    }

    /// Waits for a key, for at most that long. Whether the terminal is still there: where it is gone, what reads keys would try for ever.
    fn wait(&self, most: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel fills in the structure.
        unsafe { libc::poll(&raw mut poll, 1, most.as_millis() as i32) };
        poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) == 0
    }
}

/// Shows `watch` until it is enough. Ends the process if a signal says so, as the signal does.
pub(super) fn show(
    watch: &mut Watch,
    first: Look,
    table: TopTable,
    interval: Duration,
) -> anyhow::Result<()> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)
            .context("can't handle signals")?;
    }
    let ended = {
        let mut terminal = Taken::new()?;
        run(watch, first, &mut Screen::new(table), interval, &mut terminal, &signal)
    };
    match signal.load(Ordering::Relaxed) {
        0 => ended,
        number => Ok(signal_hook::low_level::emulate_default_handler(number as i32)?),
    }
}

fn run(
    watch: &mut Watch,
    mut look: Look,
    screen: &mut Screen,
    mut interval: Duration,
    terminal: &mut Taken,
    signal: &AtomicUsize,
) -> anyhow::Result<()> {
    let keys = Keys::new().context("can't read keys")?;
    let mut looked = Instant::now();
    loop {
        terminal.0.draw(|frame| screen.draw(frame, &look)).context("can't draw")?;
        let wish = loop {
            if signal.load(Ordering::Relaxed) != 0 {
                return Ok(());
            }
            let is_due = look.is_running && !screen.is_paused;
            let left = look.pause(interval).saturating_sub(looked.elapsed());
            if is_due && left.is_zero() {
                break None;
            }
            let step = if is_due { left.min(STEP) } else { STEP };
            if !keys.wait(step) {
                return Ok(());
            }
            if event::poll(Duration::ZERO).context("can't read keys")? {
                match event::read().context("can't read keys")? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        break Some(screen.key(key, &look));
                    }
                    Event::Resize(..) => break Some(Wish::Nothing),
                    _ => {}
                }
            }
        };
        match wish {
            None => {}
            Some(Wish::Nothing) => continue,
            Some(Wish::Quit) => return Ok(()),
            Some(Wish::Slower) => {
                interval = (interval * 2).min(LONGEST);
                continue;
            }
            Some(Wish::Faster) => {
                interval = (interval / 2).max(SHORTEST);
                continue;
            }
            Some(Wish::Stop) => {
                stop(terminal)?;
                continue;
            }
            Some(Wish::Choose(process)) => watch.choose(process),
        }
        // What can't be read now was read before: that stays.
        match watch.look() {
            Ok(new) => (look, screen.trouble) = (new, None),
            Err(error) => screen.trouble = Some(format!("{error:#}")),
        }
        looked = Instant::now();
    }
}

/// Stops, as Ctrl-Z asks for, with the terminal as it was.
fn stop(terminal: &mut Taken) -> anyhow::Result<()> {
    ratatui::try_restore().context("can't give the terminal back")?;
    signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
    terminal.0 = ratatui::try_init().context("can't use the terminal")?;
    Ok(())
}
