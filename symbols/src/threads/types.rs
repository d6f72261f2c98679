//! Names of types, taken apart.

/// The arguments of the template that begins `name`, such as `std::tuple`, wherever it first
/// occurs in `text`. Empty if it does not, or if the brackets don't match.
pub(super) fn arguments<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let Some(start) = text.find(&format!("{name}<")) else { return Vec::new() };
    let inside_at = start + name.len() + 1;
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut part_at = inside_at;
    let mut previous = ' ';
    for (offset, c) in text[inside_at..].char_indices() {
        let at = inside_at + offset;
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if previous == '-' => {}
            '>' if depth == 0 => {
                parts.push(text[part_at..at].trim());
                return parts;
            }
            '>' | ')' | ']' | '}' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Vec::new(),
            },
            ',' if depth == 0 => {
                parts.push(text[part_at..at].trim());
                part_at = at + 1;
            }
            _ => {}
        }
        previous = c;
    }
    Vec::new()
}

/// The parameters in a function's type or name: `int, char` of `void (*)(int, char)` and of
/// `f(int, char)`.
pub(super) fn parameters(text: &str) -> Option<&str> {
    let end = text.rfind(')')?;
    let mut depth = 0_usize;
    for (at, c) in text[..=end].char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => {
                depth -= 1;
                if depth == 0 {
                    return Some(text[at + 1..end].trim());
                }
            }
            _ => {}
        }
    }
    None
}

/// Size and alignment of a type, in bytes, if its name alone tells.
fn layout(name: &str) -> Option<(usize, usize)> {
    let bare = name.trim_end_matches(" const");
    if bare.ends_with('*') || bare.starts_with("std::reference_wrapper<") || bare.ends_with("(*)") {
        return Some((8, 8));
    }
    if bare.contains("(*)(") && bare.ends_with(')') {
        return Some((8, 8));
    }
    Some(match bare {
        "bool" | "char" | "signed char" | "unsigned char" => (1, 1),
        "short" | "unsigned short" => (2, 2),
        "int" | "unsigned int" | "float" => (4, 4),
        "long" | "unsigned long" | "long long" | "unsigned long long" | "double" => (8, 8),
        _ if bare.starts_with("std::unique_ptr<") => (8, 8),
        _ if bare.starts_with("std::shared_ptr<") => (16, 8),
        _ => return None,
    })
}

/// Where the first of `types`, a pointer to a function, is in a libstdc++ tuple that begins at
/// `offset`: the last of the types comes first in memory. `None` if the name of a type does not
/// tell its size.
pub(super) fn offset_of_first(types: &[&str], offset: usize) -> Option<usize> {
    let (_, rest) = types.split_first()?;
    let mut at = offset;
    for name in rest.iter().rev() {
        let (size, alignment) = layout(name)?;
        at = at.next_multiple_of(alignment) + size;
    }
    Some(at.next_multiple_of(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_nested_templates() {
        let state = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)(int, char), int, std::map<int, long> > > >";
        let tuple = arguments(state, "std::tuple");
        assert_eq!(tuple, ["void (*)(int, char)", "int", "std::map<int, long>"]);
        assert_eq!(arguments("a<b->c, d>", "a"), ["b->c", "d"]);
        assert_eq!(arguments("main::{lambda(int, int)#1}", "a"), [] as [&str; 0]);
        assert_eq!(arguments("a<b", "a"), [] as [&str; 0]);
        assert_eq!(arguments("a<b)", "a"), [] as [&str; 0]);
    }

    #[test]
    fn parameters_of_types_and_functions() {
        assert_eq!(parameters("void (*)(int, char)"), Some("int, char"));
        assert_eq!(parameters("f(void (*)(int))"), Some("void (*)(int)"));
        assert_eq!(parameters("worker()"), Some(""));
        assert_eq!(parameters("worker"), None);
        assert_eq!(parameters("))"), None);
    }

    #[test]
    fn the_function_comes_last_in_memory() {
        assert_eq!(offset_of_first(&["void (*)()"], 8), Some(8));
        assert_eq!(offset_of_first(&["void (*)(int)", "int"], 8), Some(16));
        assert_eq!(offset_of_first(&["void (*)(int, int, int)", "int", "int", "int"], 8), Some(24));
        assert_eq!(offset_of_first(&["void (*)(T)", "T"], 8), None);
        assert_eq!(offset_of_first(&["void (T::*)()", "T*"], 8), Some(16));
    }
}
