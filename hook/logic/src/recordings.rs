//! The paths of recordings.

use chase_format::layout::EXTENSION;

use crate::text::{Text, directory_of, ends_with_path, file_name};

/// Whether a path is that of a recording.
#[must_use]
pub fn is_recording(path: &[u8]) -> bool {
    file_name(path).strip_suffix(EXTENSION.as_bytes()).is_some_and(|stem| stem.ends_with(b"."))
}

/// Returns the directory that `recording` is in, if `relative` leads to it from one of those above.
#[must_use]
pub fn directory_led_to<'a>(recording: &'a [u8], relative: &[u8]) -> Option<&'a [u8]> {
    let directory = directory_of(recording).strip_suffix(b"/")?;
    ends_with_path(directory, relative).then_some(directory)
}

/// Sets `path` to that of the recording of a process, whose first image has number 0.
pub fn set_path<const N: usize>(
    path: &mut Text<N>,
    directory: &[u8],
    executable: &[u8],
    process: u32,
    image: u64,
) {
    path.clear();
    path.push(directory).push(b"/").push(file_name(executable));
    path.push(b".").push_number(u64::from(process));
    if image > 0 {
        path.push(b".").push_number(image);
    }
    path.push(b".").push(EXTENSION.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_whose_the_recording_is() {
        let of = |image| {
            let mut path = Text::<64>::new();
            set_path(&mut path, b"/srv/chase.data", b"/usr/bin/app", 77, image);
            path.as_bytes().to_vec()
        };
        assert_eq!(of(0), std::format!("/srv/chase.data/app.77.{EXTENSION}").into_bytes());
        assert_eq!(of(3), std::format!("/srv/chase.data/app.77.3.{EXTENSION}").into_bytes());
        assert!(is_recording(&of(0)) && is_recording(&of(3)));
        let mut path = Text::<16>::new();
        set_path(&mut path, b"/srv/chase.data", b"/usr/bin/app", 77, 0);
        assert!(path.is_cut());
    }

    #[test]
    fn other_files_are_no_recordings() {
        let of = |start: &str| std::format!("{start}{EXTENSION}").into_bytes();
        assert!(!is_recording(&of("/a/")) && !is_recording(&of("/a/x")));
        assert!(!is_recording(&of("/a/b.").split_off(2)[..2]) && !is_recording(b""));
    }

    #[test]
    fn the_directory_of_a_parent_is_taken_if_the_setting_leads_there() {
        let recording = std::format!("/srv/run/chase.data/app.77.{EXTENSION}").into_bytes();
        let led_to = |relative: &[u8]| directory_led_to(&recording, relative);
        assert_eq!(led_to(b"chase.data"), Some(&b"/srv/run/chase.data"[..]));
        assert_eq!(led_to(b"./run/chase.data/"), Some(&b"/srv/run/chase.data"[..]));
        assert_eq!([led_to(b"other"), led_to(b"../chase.data")], [None; 2]);
        assert_eq!(directory_led_to(b"app.77.x", b"chase.data"), None);
    }
}
