//! CPython's objects, as its headers lay them out.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::memory::Memory;
use crate::text::Text;

const REF: usize = size_of::<usize>();
/// How many attributes of an object, or entries of a class, are read.
const MANY_ENTRIES: usize = 512;
/// How many classes of a method resolution order are read.
const MANY_CLASSES: usize = 32;
/// The maximum length of a text, in characters.
const LONGEST: usize = 120;

/// `tp_flags`: instances keep their `__dict__` in front of the object (3.11 and later).
const MANAGED_DICT: usize = 1 << 4;
/// `tp_flags`: instances keep their values behind the object (3.13).
const INLINE_VALUES: usize = 1 << 2;

/// Offsets in `PyTypeObject`, the same in all versions.
mod type_offset {
    pub(super) const NAME: usize = 24;
    pub(super) const BASIC_SIZE: usize = 32;
    pub(super) const FLAGS: usize = 168;
    pub(super) const DICT: usize = 264;
    pub(super) const DICT_OFFSET: usize = 288;
    pub(super) const MRO: usize = 344;
}

/// The addresses of the types that objects are checked against: symbols of the interpreter.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    /// `PyMethod_Type`.
    pub method: usize,
    /// `PyFunction_Type`.
    pub function: usize,
    /// `PyCFunction_Type`.
    pub builtin: usize,
    /// `PyUnicode_Type`.
    pub unicode: usize,
    /// `PyDict_Type`.
    pub dict: usize,
    /// `PyTuple_Type`.
    pub tuple: usize,
    /// `Py_Version`, from 3.11 on; otherwise 0.
    pub version: usize,
}

/// The layouts that differ between versions.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Layout {
    /// 3.8 to 3.10: every object has a `__dict__` of its own.
    Dicts,
    /// 3.11: values are stored separately, and pointed to from in front of the object.
    Values311,
    /// 3.12: the same, by one tagged word.
    Values312,
    /// 3.13: values are stored behind the object.
    Values313,
}

impl Layout {
    /// Returns the layout of the version in `Py_Version`, which exists from 3.11 on; `None` if it is unknown.
    pub(super) fn of_version(version: Option<usize>) -> Option<Self> {
        match version.map(|version| version >> 16) {
            None => Some(Self::Dicts),
            Some(0x030b) => Some(Self::Values311),
            Some(0x030c) => Some(Self::Values312),
            Some(0x030d) => Some(Self::Values313),
            Some(_) => None,
        }
    }
}

/// The name of an attribute. The interpreter interns names, so most dictionaries have the same object as a key: it is
/// cached here.
pub(super) struct Name {
    text: &'static [u8],
    last: AtomicUsize,
}

impl Name {
    pub(super) const fn new(text: &'static [u8]) -> Self {
        Self { text, last: AtomicUsize::new(0) }
    }
}

/// The texts of a Python function, by address.
#[derive(Clone, Copy)]
pub(super) struct Function {
    /// `__qualname__`.
    pub(super) name: usize,
    /// `__module__`; 0 if it has none.
    pub(super) module: usize,
}

/// Returns the address of so many words behind another one, which may be nonsense.
fn behind(address: usize, words: usize) -> usize {
    address.wrapping_add(words.wrapping_mul(REF))
}

/// Reads the interpreter's objects.
pub(super) struct Objects<'a, M> {
    pub(super) reader: &'a mut M,
    pub(super) types: &'a Types,
    pub(super) layout: Layout,
}

impl<M: Memory> Objects<'_, M> {
    /// Reads word number `place` of an object.
    pub(super) fn field(&mut self, object: usize, place: usize) -> Option<usize> {
        self.reader.word(behind(object, place))
    }

    fn field_at(&mut self, object: usize, offset: usize) -> Option<usize> {
        self.reader.word(object.wrapping_add(offset))
    }

    fn is(&mut self, object: usize, type_: usize) -> bool {
        object != 0 && self.field(object, 1) == Some(type_)
    }

    /// Returns function and object of a bound method.
    pub(super) fn bound(&mut self, object: usize) -> Option<(usize, usize)> {
        if !self.is(object, self.types.method) {
            return None;
        }
        Some((self.field(object, 2)?, self.field(object, 3)?))
    }

    /// Returns the texts of a function.
    pub(super) fn function(&mut self, object: usize) -> Option<Function> {
        if !self.is(object, self.types.function) {
            return None;
        }
        // Before 3.10: code, globals, defaults, kwdefaults, closure, doc, name, dict, weakrefs, module, annotations,
        // qualname. Since: globals, builtins, name, qualname, code, ... They can be told apart because a qualified
        // name is a text, and a closure is not.
        let mut at = |place: usize| -> Option<usize> {
            let text = self.field(object, place)?;
            self.is(text, self.types.unicode).then_some(text)
        };
        match (at(5), at(13)) {
            (Some(name), module) => Some(Function { name, module: module.unwrap_or(0) }),
            (None, Some(name)) => Some(Function { name, module: at(11).unwrap_or(0) }),
            (None, None) => None,
        }
    }

    /// Returns the name of a function written in C, a C string, and its module, an object or 0.
    pub(super) fn builtin(&mut self, object: usize) -> Option<(usize, usize)> {
        if !self.is(object, self.types.builtin) {
            return None;
        }
        let definition = self.field(object, 2)?;
        Some((self.reader.word(definition)?, self.field(object, 4)?))
    }

    pub(super) fn is_none(&mut self, object: usize) -> bool {
        self.type_name(object).is_some_and(|name| self.is_c_text(name, b"NoneType"))
    }

    fn type_of(&mut self, object: usize) -> Option<usize> {
        let type_ = self.field(object, 1)?;
        // The type of a type is `type` or a metaclass; either way it has a name and a resolution order.
        let mro = self.field_at(type_, type_offset::MRO)?;
        self.is(mro, self.types.tuple).then_some(type_)
    }

    /// Returns the name of an object's type, a C string.
    pub(super) fn type_name(&mut self, object: usize) -> Option<usize> {
        let type_ = self.type_of(object)?;
        self.field_at(type_, type_offset::NAME)
    }

    /// Returns the value of `name` in the class of `object` and its base classes.
    pub(super) fn method(&mut self, object: usize, name: &Name) -> Option<usize> {
        let type_ = self.type_of(object)?;
        let mro = self.field_at(type_, type_offset::MRO)?;
        let classes = self.field(mro, 2)?;
        for number in 0..classes.min(MANY_CLASSES) {
            let class = self.field(mro, 3 + number)?;
            let dict = self.field_at(class, type_offset::DICT)?;
            if let Some(found) = self.in_dict(dict, name) {
                return Some(found);
            }
        }
        None
    }

    /// Returns the attribute `name` of the object itself.
    pub(super) fn attribute(&mut self, object: usize, name: &Name) -> Option<usize> {
        let type_ = self.type_of(object)?;
        let flags = self.field_at(type_, type_offset::FLAGS)?;
        if flags & MANAGED_DICT == 0 {
            let offset = self.field_at(type_, type_offset::DICT_OFFSET)?;
            if offset == 0 || offset > 1 << 16 {
                return None;
            }
            let dict = self.field_at(object, offset)?;
            return self.in_dict(dict, name);
        }
        let in_front = |words: usize| object.wrapping_sub(words * REF);
        match self.layout {
            Layout::Dicts => None,
            Layout::Values311 => match self.reader.word(in_front(4))? {
                0 => {
                    let dict = self.reader.word(in_front(3))?;
                    self.in_dict(dict, name)
                }
                values => self.in_values(type_, values, name),
            },
            Layout::Values312 => match self.reader.word(in_front(3))? {
                values if values & 1 == 1 => self.in_values(type_, values.wrapping_add(1), name),
                dict => self.in_dict(dict, name),
            },
            Layout::Values313 => match self.reader.word(in_front(3))? {
                0 if flags & INLINE_VALUES != 0 => {
                    let values =
                        object.wrapping_add(self.field_at(type_, type_offset::BASIC_SIZE)?);
                    let is_valid = self.reader.byte(values.wrapping_add(3))? == 1;
                    if is_valid { self.in_values(type_, behind(values, 1), name) } else { None }
                }
                dict => self.in_dict(dict, name),
            },
        }
    }

    /// Returns the value of `name` among the `values` of an object whose class has the keys.
    fn in_values(&mut self, type_: usize, values: usize, name: &Name) -> Option<usize> {
        // PyHeapTypeObject: name, slots, qualified name, keys, behind the tables of functions.
        let name_at = if self.layout == Layout::Values311 { 848 } else { 856 };
        let type_name = self.field_at(type_, name_at)?;
        if !self.is(type_name, self.types.unicode) {
            return None;
        }
        let keys = self.field_at(type_, name_at + 3 * REF)?;
        let place = self.place_in_keys(keys, name)?.0;
        self.field(values, place).filter(|&value| value != 0)
    }

    fn in_dict(&mut self, dict: usize, name: &Name) -> Option<usize> {
        if !self.is(dict, self.types.dict) {
            return None;
        }
        let keys = self.field(dict, 4)?;
        let values = self.field(dict, 5)?;
        let (place, value_at) = self.place_in_keys(keys, name)?;
        let at = match (values, self.layout) {
            (0, _) => value_at,
            (values, Layout::Values313) => behind(values, 1 + place),
            (values, _) => behind(values, place),
        };
        self.reader.word(at).filter(|&value| value != 0)
    }

    /// Returns the number of the entry for `name`, and the address of its value.
    fn place_in_keys(&mut self, keys: usize, name: &Name) -> Option<(usize, usize)> {
        let (entries, entry_len, key_at, count);
        if self.layout == Layout::Dicts {
            let size = self.field(keys, 1)?;
            let index_len = match size {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                _ => 4,
            };
            count = self.field(keys, 4)?;
            entries = behind(keys, 5).wrapping_add(size.wrapping_mul(index_len));
            (entry_len, key_at) = (3, 1);
        } else {
            let kinds = self.field(keys, 1)?.to_le_bytes();
            let [_, index_bytes, kind, ..] = kinds;
            count = self.field(keys, 3)?;
            entries = behind(keys, 4).wrapping_add(1 << (index_bytes & 31));
            // If all keys are texts, entries have no hashes.
            (entry_len, key_at) = if kind == 0 { (3, 1) } else { (2, 0) };
        }
        let last = name.last.load(Ordering::Relaxed);
        let by_place = |_: &mut Self, key| key == last;
        let by_text = |this: &mut Self, key| this.is_text(key, name.text);
        let known = if last == 0 {
            None
        } else {
            self.find_key(count, entries, (entry_len, key_at), &by_place)
        };
        // That object may have been freed, and another text be at its address.
        let known = known.filter(|found| self.is_text(found.2, name.text));
        let (number, value_at, key) = match known {
            Some(found) => found,
            None => self.find_key(count, entries, (entry_len, key_at), &by_text)?,
        };
        name.last.store(key, Ordering::Relaxed);
        Some((number, value_at))
    }

    /// Returns the first of `count` entries, of `len` words each, whose key satisfies `is_meant`: its number, the
    /// address of its value, and its key.
    fn find_key(
        &mut self,
        count: usize,
        entries: usize,
        (len, key_at): (usize, usize),
        is_meant: &dyn Fn(&mut Self, usize) -> bool,
    ) -> Option<(usize, usize, usize)> {
        for number in 0..count.min(MANY_ENTRIES) {
            let entry = behind(entries, number * len);
            let key = self.field(entry, key_at)?;
            if is_meant(self, key) {
                return Some((number, behind(entry, key_at + 1), key));
            }
        }
        None
    }

    /// Whether `object` is the text `wanted`, which is ASCII.
    pub(super) fn is_text(&mut self, object: usize, wanted: &[u8]) -> bool {
        // The length is compared first, since it differs for most keys of a dictionary.
        if object == 0 || self.field(object, 2) != Some(wanted.len()) {
            return false;
        }
        let mut left = Some(wanted);
        let is_text = self.text(object, |bytes| {
            left = left.and_then(|left| left.strip_prefix(bytes));
        });
        is_text && left.is_some_and(<[u8]>::is_empty)
    }

    /// Appends a text to `to`, in UTF-8. Returns false if `object` is no text.
    pub(super) fn put<const N: usize>(&mut self, object: usize, to: &mut Text<N>) -> bool {
        self.text(object, |bytes| {
            to.push(bytes);
        })
    }

    /// Calls `each` with the characters of a text in UTF-8. Returns false if it is no text.
    fn text(&mut self, object: usize, mut each: impl FnMut(&[u8])) -> bool {
        self.characters(object, |character| {
            each(character.encode_utf8(&mut [0; 4]).as_bytes());
        })
        .is_some()
    }

    fn characters(&mut self, object: usize, mut each: impl FnMut(char)) -> Option<()> {
        if !self.is(object, self.types.unicode) {
            return None;
        }
        let len = self.field(object, 2)?;
        // interned: 2 bits, kind: 3, compact: 1, ascii: 1.
        let state = self.field(object, 4)?;
        let (kind, is_compact, is_ascii) =
            (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if !is_compact || !matches!(kind, 1 | 2 | 4) {
            return None;
        }
        // Up to 3.11 there is also a pointer to the wide form, and its length if it is not ASCII.
        let head = match (is_ascii, self.layout) {
            (true, Layout::Dicts | Layout::Values311) => 48,
            (true, _) => 40,
            (false, Layout::Dicts | Layout::Values311) => 72,
            (false, _) => 56,
        };
        let data = object.wrapping_add(head);
        for place in 0..len.min(LONGEST) {
            let mut code = 0;
            for byte in (0..kind).rev() {
                code = code << 8
                    | u32::from(self.reader.byte(data.wrapping_add(place * kind + byte))?);
            }
            // Control characters, such as line feeds, are replaced.
            each(char::from_u32(code).filter(|c| !c.is_control()).unwrap_or('\u{fffd}'));
        }
        Some(())
    }

    /// Whether the C string at `address` is `wanted`.
    pub(super) fn is_c_text(&mut self, address: usize, wanted: &[u8]) -> bool {
        let places = wanted.iter().chain(&[0]).enumerate();
        places
            .into_iter()
            .all(|(place, &byte)| self.reader.byte(address.wrapping_add(place)) == Some(byte))
    }

    /// Appends the C string at `address` to `to`. Returns false if there is none.
    pub(super) fn put_c<const N: usize>(&mut self, address: usize, to: &mut Text<N>) -> bool {
        for place in 0..LONGEST {
            match self.reader.byte(address.wrapping_add(place)) {
                None | Some(0) => return place > 0,
                Some(byte) => to.push(&[byte]),
            };
        }
        true
    }
}
