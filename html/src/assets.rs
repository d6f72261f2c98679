//! The page's style and script, which are files of their own in `assets`.
//!
//! Scripts are modules, so that node can test them one by one. In the page they are one script, in an order in which each
//! is after those that it uses: what names files is left out, and names are unique among all of them.

const BASE: &str = include_str!("../assets/style/base.css");
const CHARTS: &str = include_str!("../assets/style/charts.css");
const STYLES: [&str; 5] = [
    BASE,
    CHARTS,
    include_str!("../assets/style/tables.css"),
    include_str!("../assets/style/timeline.css"),
    include_str!("../assets/style/print.css"),
];

const MODULES: [&str; 18] = [
    include_str!("../assets/script/quantities.mjs"),
    include_str!("../assets/script/arranging.mjs"),
    include_str!("../assets/script/elements.mjs"),
    include_str!("../assets/script/filter.mjs"),
    include_str!("../assets/script/fitting.mjs"),
    include_str!("../assets/script/choices.mjs"),
    include_str!("../assets/script/panels.mjs"),
    include_str!("../assets/script/tables.mjs"),
    include_str!("../assets/script/values.mjs"),
    include_str!("../assets/script/rows.mjs"),
    include_str!("../assets/script/window.mjs"),
    include_str!("../assets/script/samples.mjs"),
    include_str!("../assets/script/lanes.mjs"),
    include_str!("../assets/script/sums.mjs"),
    include_str!("../assets/script/following.mjs"),
    include_str!("../assets/script/drawing.mjs"),
    include_str!("../assets/script/timeline.mjs"),
    include_str!("../assets/script/main.mjs"),
];

/// All styles.
pub(crate) fn style() -> String {
    STYLES.concat()
}

/// What the page's style has for pictures on dark paper, for those that are files of their own: without the page's elements and
/// variables.
pub(crate) fn dark_pictures() -> String {
    const DARK: &str = "@media screen and (prefers-color-scheme: dark) {\n";
    fn dark(style: &str) -> impl Iterator<Item = &str> {
        let inside = style.split_once(DARK).map_or("", |(_, rest)| rest);
        inside.lines().take_while(|line| *line != "}")
    }
    let variables: Vec<(String, &str)> = dark(BASE)
        .filter_map(|line| line.trim().strip_suffix(';')?.split_once(": "))
        .map(|(name, value)| (format!("var({name})"), value))
        .collect();
    let mut style = DARK.to_owned();
    for line in dark(CHARTS).filter(|line| line.contains("fill") || line.contains("stroke")) {
        let mut line = line.replacen("figure ", "", 1);
        for (variable, value) in &variables {
            line = line.replace(variable, value);
        }
        style.push_str(&line);
        style.push('\n');
    }
    style + "}\n"
}

/// All modules as one script.
pub(crate) fn script() -> String {
    let mut script = String::new();
    for line in MODULES.iter().flat_map(|module| module.lines()) {
        if line.starts_with("import ") {
            continue;
        }
        script.push_str(line.strip_prefix("export ").unwrap_or(line));
        script.push('\n');
    }
    script
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The name that a line declares for its whole module.
    fn declared(line: &str) -> Option<&str> {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let line = line.strip_prefix("async ").unwrap_or(line);
        let (kind, rest) = line.split_once(' ')?;
        let is_declaration = matches!(kind, "const" | "let" | "function" | "class");
        is_declaration.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())?
    }

    #[test]
    fn names_of_modules_are_unique_among_all() {
        let mut known = BTreeSet::new();
        for name in MODULES.iter().flat_map(|module| module.lines()).filter_map(declared) {
            assert!(known.insert(name), "{name} is declared twice");
        }
        assert!(known.len() > 20, "{known:?}");
    }

    #[test]
    fn the_script_is_whole_without_files_and_ends_no_element() {
        let script = script();
        for wrong in ["\nimport ", "\nexport ", "</script", "<!--"] {
            assert!(!script.contains(wrong), "{wrong}");
        }
        assert!(!style().contains("</style") && !style().contains("url("));
    }
}
