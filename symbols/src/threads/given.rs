//! What a start routine of the program's own was given to run.
//!
//! Many programs wrap the creation of threads: all begin in one routine, which runs a function, or a virtual one of an object, that
//! its argument names. One thread alone doesn't tell such a routine from one with a callback. Where threads of one routine were
//! given different functions at the same place, these tell the threads apart, whatever the routine does with them.

use super::{ThreadFunction, ThreadKind, ThreadStart, Word, cpp, is_runtime};
use crate::symbolizer::Symbolizer;

/// A function, or a class with virtual functions, that a thread was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where: the number of the word that the argument points to, or one more than the last for what that points to.
    pub place: usize,
    function: ThreadFunction,
}

impl Given {
    /// What it was: threads with different values differ in what they were given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.function.name
    }

    /// The function of a thread that `routine` runs, and that was given this.
    #[must_use]
    pub fn to(self, routine: &ThreadFunction) -> ThreadFunction {
        let wrapper = Some(routine.name.clone());
        ThreadFunction { kind: routine.kind, wrapper, ..self.function }
    }
}

impl Symbolizer {
    /// The functions and classes among what `routine` was given for a thread.
    #[must_use]
    pub fn given(&self, start: &ThreadStart<'_>, routine: &ThreadFunction) -> Vec<Given> {
        if start.is_found || routine.is_of_runtime() {
            return Vec::new();
        }
        let place_of_inner = start.words.len();
        let given = |place, word: &Word<'_>| {
            let function = self.named_function(word).or_else(|| self.class(word))?;
            Some(Given { place, function })
        };
        match routine.kind {
            ThreadKind::Plain => {
                let words = start.words.iter().enumerate();
                words.filter_map(|(place, word)| given(place, word)).collect()
            }
            // The runtime's own words come first; the program's begin where its data points to.
            ThreadKind::Apr | ThreadKind::Cpp => {
                let first = start.inner_words.first();
                first.and_then(|word| given(place_of_inner, word)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The function that begins at `word`, unless it is a runtime's.
    fn named_function(&self, word: &Word<'_>) -> Option<ThreadFunction> {
        let (object, svma) = word.file.filter(|(object, _)| !is_runtime(object))?;
        if self.function_start(object, svma) != Some(svma) {
            return None;
        }
        self.pointed(Some(word), ThreadKind::Plain)
    }

    /// The class whose table of virtual functions `word` points to.
    fn class(&self, word: &Word<'_>) -> Option<ThreadFunction> {
        word.file.filter(|(object, _)| !is_runtime(object))?;
        let name = class_in(&cpp::type_name(self, word)?)?.to_owned();
        let kind = ThreadKind::Plain;
        Some(ThreadFunction { name, kind, wrapper: None, code: None, source: None })
    }
}

/// The class in the name of its type information. What merely looks like a table has no such name.
fn class_in(name: &str) -> Option<&str> {
    name.strip_prefix("typeinfo name for ").or_else(|| name.strip_prefix("typeinfo for "))
}

#[cfg(test)]
mod tests {
    use super::class_in;
    use crate::demangle;

    #[test]
    fn classes_by_their_type_information() {
        assert_eq!(class_in(&demangle("_ZTS8Compress")), Some("Compress"));
        assert_eq!(class_in(&demangle("_ZTIN3app4SendE")), Some("app::Send"));
        assert_eq!(class_in(&demangle("_ZTShello")), None);
    }
}
