//! Verbs of groups whose names are plural: "threads of app not seen to start poll", and not "polls".

/// Whether a group is called after being several.
pub(super) fn is_plural(label: &str) -> bool {
    label.starts_with("threads of ") || label.starts_with("forks of ")
}

/// `claim` with the verb that follows `label` in the number of that.
pub(super) fn agreeing(claim: String, label: &str) -> String {
    let rest = claim.strip_prefix(label).filter(|_| is_plural(label));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix(' ')) else { return claim };
    let (verb, rest) = rest
        .split_once(' ')
        .map_or((rest, String::new()), |(verb, rest)| (verb, format!(" {rest}")));
    let verb = match verb {
        "is" => "are",
        "fetches" => "fetch",
        _ => verb.strip_suffix('s').unwrap_or(verb),
    };
    format!("{label} {verb}{rest}")
}

#[cfg(test)]
mod tests {
    use super::agreeing;

    #[test]
    fn verbs_agree_with_names() {
        let said = |label: &str, does: &str| agreeing(format!("{label} {does}"), label);
        let found = "threads of app not seen to start";
        for (one, many) in [
            ("polls", "poll"),
            ("makes a compressor again and again", "make a compressor again and again"),
            ("uses a.csv in small pieces", "use a.csv in small pieces"),
            ("is kept waiting", "are kept waiting"),
            ("fetches an algorithm", "fetch an algorithm"),
            ("still works", "still works"),
        ] {
            assert_eq!(said(found, one), format!("{found} {many}"));
            assert_eq!(said("main of app", one), format!("main of app {one}"));
        }
        let other = "12 calls of read in forks of app are slow";
        assert_eq!(agreeing(other.to_owned(), "forks of app"), other);
    }
}
