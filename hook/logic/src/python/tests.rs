//! Objects as the interpreter's versions lay them out, in memory of the tests' own.

use std::collections::BTreeMap;
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::{Types, name};
use crate::memory::Memory;
use crate::text::Text;

const WORD: usize = 8;
/// Words of `PyHeapTypeObject`.
const TYPE_WORDS: usize = 120;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    Python310,
    Python311,
    Python312,
    Python313,
}

use Version::{Python310, Python311, Python312, Python313};

const VERSIONS: [Version; 4] = [Python310, Python311, Python312, Python313];

/// Words by address; others can't be read.
struct Heap {
    words: BTreeMap<usize, usize>,
    end: usize,
    types: Types,
    version: Version,
}

impl Memory for Heap {
    fn word(&mut self, address: usize) -> Option<usize> {
        self.words.get(&address).copied()
    }
}

impl Heap {
    fn new(version: Version) -> Self {
        let types =
            Types { method: 0, function: 0, builtin: 0, unicode: 0, dict: 0, tuple: 0, version: 0 };
        let mut heap = Self { words: BTreeMap::new(), end: 0x10_000, types, version };
        heap.types.unicode = heap.add(&[0; TYPE_WORDS]);
        heap.types.tuple = heap.add(&[0; TYPE_WORDS]);
        heap.types.dict = heap.add(&[0; TYPE_WORDS]);
        heap.types.method = heap.class("method", &[], &[]);
        heap.types.function = heap.class("function", &[], &[]);
        heap.types.builtin = heap.class("builtin_function_or_method", &[], &[]);
        heap.types.version = match version {
            Python310 => 0,
            Python311 => heap.add(&[0x030b_04f0]),
            Python312 => heap.add(&[0x030c_01f0]),
            Python313 => heap.add(&[0x030d_00f0]),
        };
        heap
    }

    /// Puts words behind those that are there, and returns where.
    fn add(&mut self, words: &[usize]) -> usize {
        let at = self.end;
        self.words.extend((at..).step_by(WORD).zip(words.iter().copied()));
        // Nothing can be read in between.
        self.end += (words.len() + 4) * WORD;
        at
    }

    fn c_text(&mut self, text: &str) -> usize {
        let words = words_of(&[text.as_bytes(), &[0]].concat());
        self.add(&words)
    }

    fn text(&mut self, text: &str) -> usize {
        let is_ascii = text.is_ascii();
        let wide: Vec<u8> = text.chars().flat_map(|c| (c as u16).to_le_bytes()).collect();
        let characters = if is_ascii { words_of(text.as_bytes()) } else { words_of(&wide) };
        let kind = if is_ascii { 1 } else { 2 };
        let state = kind << 2 | 1 << 5 | usize::from(is_ascii) << 6;
        let mut words = vec![1, self.types.unicode, text.chars().count(), 77, state];
        let is_old = matches!(self.version, Python310 | Python311);
        words.extend(vec![
            0;
            usize::from(is_old) + if is_ascii { 0 } else { 2 + usize::from(is_old) }
        ]);
        words.extend(characters);
        self.add(&words)
    }

    fn tuple(&mut self, items: &[usize]) -> usize {
        let head = [1, self.types.tuple, items.len()];
        self.add(&[&head, items].concat())
    }

    fn keys(&mut self, entries: &[(usize, usize)]) -> usize {
        let with_hashes = self.version == Python310;
        let mut words = if with_hashes {
            vec![1, 8, 0, 0, entries.len(), 0]
        } else {
            // Of 8 places, an index of 8 bytes, and keys of any kind or texts only.
            let of_texts = entries.len() % 2;
            vec![1, 3 | 3 << 8 | of_texts << 16, 0, entries.len(), 0]
        };
        let has_hash = with_hashes || words[1] >> 16 == 0;
        for &(key, value) in entries {
            words.extend(has_hash.then_some(55));
            words.extend([key, value]);
        }
        self.add(&words)
    }

    fn dict(&mut self, entries: &[(&str, usize)]) -> usize {
        let entries: Vec<_> = entries.iter().map(|&(key, value)| (self.text(key), value)).collect();
        let keys = self.keys(&entries);
        self.add(&[1, self.types.dict, entries.len(), 0, keys, 0])
    }

    /// A class with methods, whose instances have these attributes.
    fn class(&mut self, name: &str, methods: &[(&str, usize)], attributes: &[&str]) -> usize {
        let dict = self.dict(methods);
        let c_name = self.c_text(name);
        let name = self.text(name);
        let shared: Vec<_> = attributes.iter().map(|key| (self.text(key), 0)).collect();
        let keys = self.keys(&shared);
        let class = self.add(&[0; TYPE_WORDS]);
        let mro = self.tuple(&[class]);
        let flags = match self.version {
            Python310 => 0,
            Python311 | Python312 => 1 << 4,
            Python313 => 1 << 4 | 1 << 2,
        };
        let names_at = if self.version == Python311 { 848 } else { 856 };
        for (offset, word) in [
            (24, c_name),
            (32, 16),
            (168, flags),
            (264, dict),
            (288, 16),
            (344, mro),
            (names_at, name),
            (names_at + 24, keys),
        ] {
            self.words.insert(class + offset, word);
        }
        class
    }

    fn function(&mut self, module: &str, qualified: &str) -> usize {
        let [module, name] = [module, qualified].map(|text| self.text(text));
        let function = self.types.function;
        if self.version == Python310 {
            return self.add(&[1, function, 0, 0, 0, 0, 0, 0, name, 0, 0, module, 0, name]);
        }
        self.add(&[1, function, 0, 0, name, name, 0, 0, 0, 0, 0, 0, 0, module])
    }

    fn method(&mut self, function: usize, object: usize) -> usize {
        self.add(&[1, self.types.method, function, object])
    }

    /// An object with the attributes of its class, in their order.
    fn instance(&mut self, class: usize, attributes: &[&str], values: &[usize]) -> usize {
        match self.version {
            Python310 => {
                let entries: Vec<_> =
                    attributes.iter().copied().zip(values.iter().copied()).collect();
                let dict = self.dict(&entries);
                self.add(&[1, class, dict])
            }
            Python311 => {
                let values = self.add(values);
                self.add(&[values, 0, 0, 0, 1, class]) + 4 * WORD
            }
            Python312 => {
                let values = self.add(values);
                self.add(&[values - 1, 0, 0, 1, class]) + 3 * WORD
            }
            Python313 => {
                let head = [0, 0, 0, 1, class, 1 << 24];
                self.add(&[&head, values].concat()) + 3 * WORD
            }
        }
    }

    fn name_of(&mut self, callable: usize) -> String {
        let (types, mut text) = (self.types, Text::<256>::new());
        name(self, &types, &[0, callable as u64], &mut text);
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }

    /// What `threading` starts for a thread that runs `target`, of a class with these methods.
    fn thread(&mut self, methods: &[(&str, usize)], target: usize, thread_name: &str) -> usize {
        const ATTRIBUTES: [&str; 3] = ["_daemonic", "_target", "_name"];
        let class = self.class("Thread", methods, &ATTRIBUTES);
        let name = self.text(thread_name);
        let thread = self.instance(class, &ATTRIBUTES, &[name, target, name]);
        let bootstrap = self.function("threading", "Thread._bootstrap");
        self.method(bootstrap, thread)
    }
}

/// Words with these bytes, the last one filled up with 0.
fn words_of(bytes: &[u8]) -> Vec<usize> {
    let in_words = bytes.chunks(WORD).map(|part| {
        let mut word = [0; WORD];
        word[..part.len()].copy_from_slice(part);
        usize::from_le_bytes(word)
    });
    in_words.collect()
}

/// A thread of `threading` with a target.
fn with_target(version: Version) -> (Heap, usize) {
    let mut heap = Heap::new(version);
    let run = heap.function("threading", "Thread.run");
    let target = heap.function("shop.orders", "Order.fetch");
    let callable = heap.thread(&[("run", run)], target, "fetcher-\u{e9}1");
    (heap, callable)
}

#[test]
fn threads_are_named_by_what_they_run() {
    for version in VERSIONS {
        let (mut heap, callable) = with_target(version);
        let expected = "shop.orders.Order.fetch\0fetcher-\u{e9}1";
        assert_eq!(heap.name_of(callable), expected, "{version:?}");
    }
}

#[test]
fn a_class_with_a_run_of_its_own_runs_that() {
    for version in VERSIONS {
        let mut heap = Heap::new(version);
        let [run, other] = ["Worker.run", "other"].map(|name| heap.function("shop", name));
        let callable = heap.thread(&[("start", other), ("run", run)], other, "w");
        assert_eq!(heap.name_of(callable), "shop.Worker.run\0w", "{version:?}");
    }
}

#[test]
fn what_is_called_through_objects_is_found() {
    for version in VERSIONS {
        let mut heap = Heap::new(version);
        let call = heap.function("shop", "Job.__call__");
        let job = heap.class("Job", &[("__call__", call)], &[]);
        let job = heap.instance(job, &[], &[]);
        let partial = heap.class("functools.partial", &[], &[]);
        let partial = heap.add(&[1, partial, job]);
        assert_eq!(heap.name_of(partial), "shop.Job.__call__", "{version:?}");
        let [sleep, time] = [heap.c_text("sleep"), heap.text("time")];
        let definition = heap.add(&[sleep]);
        let builtin = heap.add(&[1, heap.types.builtin, definition, 0, time]);
        assert_eq!(heap.name_of(builtin), "time.sleep", "{version:?}");
        let plain = heap.class("shop.Plain", &[], &[]);
        let plain = heap.add(&[1, plain, 0]);
        assert_eq!(heap.name_of(plain), "shop.Plain", "{version:?}");
    }
}

/// A partial of itself, and a method of itself.
#[test]
fn circles_end() {
    let mut heap = Heap::new(Python312);
    let partial = heap.class("functools.partial", &[], &[]);
    let partial = heap.add(&[1, partial, 0]);
    heap.words.insert(partial + 2 * WORD, partial);
    assert_eq!(heap.name_of(partial), "");
    let method = heap.method(0, 0);
    heap.words.insert(method + 2 * WORD, method);
    assert_eq!(heap.name_of(method), "");
}

/// Any word may be another one, or not be readable, in an interpreter whose objects are not as they are taken to be.
#[test]
fn nonsense_gives_some_name_or_none() {
    for version in VERSIONS {
        let (mut heap, callable) = with_target(version);
        let addresses: Vec<usize> = heap.words.keys().copied().collect();
        let used = addresses.into_iter().filter(|address| heap.words[address] != 0);
        for address in used.collect::<Vec<_>>() {
            let word = heap.words[&address];
            for wrong in [0, usize::MAX, usize::MAX - 7, 1 << 63, callable, word + WORD] {
                heap.words.insert(address, wrong);
                assert!(heap.name_of(callable).len() <= 255);
            }
            heap.words.remove(&address);
            assert!(heap.name_of(callable).len() <= 255);
            heap.words.insert(address, word);
        }
    }
}
