//! Python's interpreter among the objects that are loaded.

use chase_logic::python::Types;

use chase_logic::elf::Image;
use chase_logic::resolve::{Wanted, find_in};

/// Returns the types of the interpreter in `image`, if it is one.
pub(super) fn types_in(image: &Image) -> Option<Types> {
    let find = |name: &[u8]| {
        let symbol = find_in(image, &Wanted::new(name, None))?;
        Some(image.bias().wrapping_add(symbol.value as usize))
    };
    Some(Types {
        method: find(b"PyMethod_Type")?,
        function: find(b"PyFunction_Type")?,
        builtin: find(b"PyCFunction_Type")?,
        unicode: find(b"PyUnicode_Type")?,
        dict: find(b"PyDict_Type")?,
        tuple: find(b"PyTuple_Type")?,
        version: find(b"Py_Version").unwrap_or(0),
    })
}
