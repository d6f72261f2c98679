//! The file format of speedscope, <https://www.speedscope.app/file-format-schema.json>.

use serde::Serialize;

use crate::{Error, Stacks};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// One of the profiles of a document, such as a thread group.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its stacks.
    pub stacks: Stacks,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<SharedFrame<'a>>,
}

#[derive(Serialize)]
struct SharedFrame<'a> {
    name: &'a str,
    file: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    r#type: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// `profiles` as one document: each stack a sample whose weight is its self time. The first
/// profile is the one shown first.
///
/// # Errors
///
/// [`Error::Json`] where JSON can't be made, which no input is known to cause.
pub fn speedscope(name: &str, exporter: &str, profiles: &[Profile]) -> Result<String, Error> {
    let mut frames = Vec::new();
    let mut sampled = Vec::new();
    for profile in profiles {
        let first = frames.len();
        frames.extend(profile.stacks.frames.iter().map(|frame| SharedFrame {
            name: &frame.function,
            file: if frame.path.is_empty() { &frame.library } else { &frame.path },
        }));
        let mut samples = Vec::new();
        let mut weights = Vec::new();
        for (number, node) in profile.stacks.with_values().filter(|(_, node)| node.self_ns > 0) {
            let path = profile.stacks.path(number);
            samples.push(path.into_iter().map(|frame| first + frame as usize).collect());
            weights.push(node.self_ns);
        }
        sampled.push(Sampled {
            r#type: "sampled",
            name: &profile.name,
            unit: "nanoseconds",
            start_value: 0,
            end_value: weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)),
            samples,
            weights,
        });
    }
    let shared = Shared { frames };
    let file =
        File { schema: SCHEMA, name, exporter, active_profile_index: 0, shared, profiles: sampled };
    Ok(serde_json::to_string(&file)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_name_their_frames_and_weigh_their_self_time() {
        let stacks = crate::stacks::sample::stacks();
        let profile = |name: &str| Profile { name: name.into(), stacks: stacks.clone() };
        let text =
            speedscope("app", "chase 1", &[profile("all"), profile("worker")]).expect("made");
        let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let second = &file["profiles"][1];
        assert_eq!(second["name"], "worker");
        assert_eq!(second["endValue"], 609);
        assert_eq!(second["weights"][2], 30);
        let frames: Vec<_> = second["samples"][2]
            .as_array()
            .expect("a stack")
            .iter()
            .map(|at| &file["shared"]["frames"][at.as_u64().expect("a number") as usize]["name"])
            .collect();
        assert_eq!(frames, ["app", "deflate", "memcpy"]);
    }
}
