//! How threads start and end, and what is recorded of that.

mod choice;
mod conditions;
mod creation;
mod end;
mod found;
mod python;
mod start;

pub(crate) use self::choice::{forget_choices, leave_out_unwanted};
pub(crate) use self::creation::Plan;
pub(crate) use self::creation::note_found;
pub(crate) use self::end::{release, watch_ends};
pub(crate) use self::found::origin as origin_of_found;
pub(crate) use self::start::{begin, current_or_adopt, prepare};
