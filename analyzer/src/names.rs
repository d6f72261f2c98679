//! Gives each object, API and import of a run one number, in whatever process it was found.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use chase_recorder::layout::{NONE, OBJECT_EXECUTABLE, SlotClass};
use chase_recorder::reader::Recording;
use foldhash::{HashMap, HashMapExt as _};

use crate::address::CodeAddress;
use crate::address_map::AddressMap;
use crate::blocking::{Cause, cause_of};
use crate::clock::Ticks;
use crate::rows::ObjectRow;

/// Objects, APIs and imports, numbered in the order in which they were found.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) objects: Vec<ObjectRow>,
    pub(crate) apis: Vec<Api>,
    pub(crate) imports: Vec<Import>,
    /// By import: a process that has it.
    pub(crate) process_of: Vec<usize>,
    object_numbers: HashMap<String, u32>,
    /// By file name and build id: `/lib` and `/usr/lib` may be one directory, and processes may find a file by
    /// different paths.
    builds: HashMap<(String, String), u32>,
    api_numbers: HashMap<Api, u32>,
    import_numbers: HashMap<Import, u32>,
    causes: Vec<Option<Cause>>,
}

/// A function of an object that is called from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Api {
    pub(crate) object: u32,
    pub(crate) symbol: String,
    pub(crate) version: String,
}

/// What an [`Api`] is looked up by: it is known for nearly all calls, which then need no copies of names.
trait ApiKey {
    fn parts(&self) -> (u32, &str, &str);
}

impl ApiKey for Api {
    fn parts(&self) -> (u32, &str, &str) {
        (self.object, &self.symbol, &self.version)
    }
}

impl ApiKey for (u32, &str, &str) {
    fn parts(&self) -> (u32, &str, &str) {
        *self
    }
}

impl<'a> Borrow<dyn ApiKey + 'a> for Api {
    fn borrow(&self) -> &(dyn ApiKey + 'a) {
        self
    }
}

impl Hash for dyn ApiKey + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl PartialEq for dyn ApiKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn ApiKey + '_ {}

// As that which it is looked up by.
impl Hash for Api {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// An object's import of an API; where contexts are told apart by the places of calls, as called from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Import {
    pub(crate) caller: u32,
    pub(crate) api: u32,
    /// The return address, in the file of an object.
    pub(crate) site: Option<Site>,
}

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    pub(crate) object: u32,
    pub(crate) svma: u64,
}

impl Site {
    pub(crate) fn address(self) -> CodeAddress {
        CodeAddress { avma: 0, object: Some(self.object), svma: Some(self.svma) }
    }
}

/// The run-wide numbers of one recording's objects and slots.
pub(crate) struct ImageNames<'r> {
    process: usize,
    recording: &'r Recording<'static>,
    objects: HashMap<u32, u32>,
    slots: HashMap<u32, (u32, SlotClass)>,
    /// What was loaded where, if there are places of calls.
    places: Option<AddressMap>,
}

/// Maps the numbers used in a part to those of the whole run.
pub(crate) struct Renumbered {
    pub(crate) objects: Vec<u32>,
    pub(crate) apis: Vec<u32>,
    pub(crate) imports: Vec<u32>,
}

impl Names {
    /// Adds the objects of a process's recording.
    pub(crate) fn image<'r>(
        &mut self,
        process: usize,
        recording: &'r Recording<'static>,
    ) -> ImageNames<'r> {
        let mut objects = HashMap::new();
        for object in recording.objects() {
            let build_id = hexadecimal(object.build_id());
            let number = self.object(&object.path(), &build_id);
            let row = &mut self.objects[number as usize];
            let soname = object.soname();
            if !soname.is_empty() {
                row.name = soname.into_owned();
            }
            row.executable |= object.record().flags & OBJECT_EXECUTABLE != 0;
            objects.insert(object.record().id, number);
        }
        let places = recording.has_sites().then(|| {
            AddressMap::new(recording, |object| objects.get(&object.record().id).copied())
        });
        ImageNames { process, recording, objects, slots: HashMap::new(), places }
    }

    /// Adds what was found in a part of the run.
    pub(crate) fn merge(&mut self, part: Self) -> Renumbered {
        let mut objects = Vec::with_capacity(part.objects.len());
        for row in part.objects {
            let number = self.object(&row.path, &row.build_id);
            let known = &mut self.objects[number as usize];
            if row.name != default_name(&row.path) {
                known.name = row.name;
            }
            known.executable |= row.executable;
            objects.push(number);
        }
        let mut apis = Vec::with_capacity(part.apis.len());
        for api in part.apis {
            apis.push(self.api((objects[api.object as usize], &api.symbol, &api.version)));
        }
        let mut imports = Vec::with_capacity(part.imports.len());
        for (Import { caller, api, site }, process) in part.imports.into_iter().zip(part.process_of)
        {
            let (caller, api) = (objects[caller as usize], apis[api as usize]);
            let site = site.map(|site| Site { object: objects[site.object as usize], ..site });
            imports.push(self.import(Import { caller, api, site }, process));
        }
        Renumbered { objects, apis, imports }
    }

    /// Returns the import and the class of a slot.
    pub(crate) fn slot(&mut self, image: &mut ImageNames<'_>, slot: u32) -> (u32, SlotClass) {
        if let Some(&known) = image.slots.get(&slot) {
            return known;
        }
        let found = self.find_slot(image, slot);
        image.slots.insert(slot, found);
        found
    }

    fn find_slot(&mut self, image: &ImageNames<'_>, number: u32) -> (u32, SlotClass) {
        let slot = image.recording.slot(number);
        let (caller, provider) = slot.map_or((NONE, NONE), |s| (s.importer, s.record().provider));
        let mut object = |id| match image.objects.get(&id) {
            Some(&number) => number,
            None => self.object("", ""),
        };
        let (caller, object) = (object(caller), object(provider));
        let symbol = slot.map_or_else(|| format!("slot {number}").into(), |slot| slot.name());
        let version = slot.map(|slot| slot.version()).unwrap_or_default();
        let api = self.api((object, &symbol, &version));
        let site = image.site(number);
        let number = self.import(Import { caller, api, site }, image.process);
        (number, slot.map_or(SlotClass::Sometimes, |slot| slot.class()))
    }

    /// Returns the pairs of caller and API, and the pair of each import: several imports have one if they are called
    /// from several places.
    pub(crate) fn callers(&self) -> (Vec<(u32, u32)>, Vec<u32>) {
        let mut pairs = Vec::new();
        let mut numbers = HashMap::new();
        let pair_of = self.imports.iter().map(|import| {
            let pair = (import.caller, import.api);
            *numbers.entry(pair).or_insert_with(|| {
                pairs.push(pair);
                pairs.len() as u32 - 1
            })
        });
        let pair_of = pair_of.collect();
        (pairs, pair_of)
    }

    /// Returns what the API of an import waits for.
    pub(crate) fn cause(&self, import: u32) -> Option<Cause> {
        self.causes[self.imports[import as usize].api as usize]
    }

    /// Returns the number of an import as called from one place.
    pub(crate) fn called_from(&mut self, import: u32, site: Option<Site>, process: usize) -> u32 {
        let plain = self.imports[import as usize];
        match site {
            Some(_) => self.import(Import { site, ..plain }, process),
            None => import,
        }
    }

    fn import(&mut self, import: Import, process: usize) -> u32 {
        let next = self.imports.len() as u32;
        let number = *self.import_numbers.entry(import).or_insert(next);
        if number == next {
            self.imports.push(import);
            self.process_of.push(process);
        }
        number
    }

    /// Returns the API of an object, a symbol and its version.
    fn api(&mut self, api: (u32, &str, &str)) -> u32 {
        if let Some(&known) = self.api_numbers.get(&api as &dyn ApiKey) {
            return known;
        }
        let (object, symbol, version) = api;
        let api = Api { object, symbol: symbol.to_owned(), version: version.to_owned() };
        let number = self.apis.len() as u32;
        self.causes.push(cause_of(symbol));
        self.apis.push(api.clone());
        self.api_numbers.insert(api, number);
        number
    }

    /// Returns the object with this path, or with another path to the same build. An empty path stands for an unknown
    /// object, an empty build id for an unknown build.
    fn object(&mut self, path: &str, build_id: &str) -> u32 {
        let known = self.object_numbers.get(path).copied();
        if let Some(known) = known
            && (build_id.is_empty() || !self.objects[known as usize].build_id.is_empty())
        {
            return known;
        }
        let build = (file_name(path).to_owned(), build_id.to_owned());
        let known = known.or_else(|| self.builds.get(&build).copied());
        let known = known.or_else(|| self.by_other_path(path, build_id));
        let number = known.unwrap_or_else(|| {
            self.objects.push(ObjectRow {
                path: path.into(),
                name: default_name(path).into(),
                build_id: String::new(),
                executable: false,
            });
            self.objects.len() as u32 - 1
        });
        self.object_numbers.entry(path.into()).or_insert(number);
        let row = &mut self.objects[number as usize];
        if row.build_id.is_empty() && !build_id.is_empty() {
            row.build_id = build.1.clone();
            self.builds.entry(build).or_insert(number);
        }
        number
    }

    /// Returns the object that the kernel and the dynamic linker name differently: where `/lib` is a link, the one says `/usr/lib/libx.so`
    /// of a mapping, whose build is not known, and the other `/lib/libx.so`.
    fn by_other_path(&self, path: &str, build_id: &str) -> Option<u32> {
        if let Some(linked) = path.strip_prefix("/usr").filter(|_| build_id.is_empty()) {
            return self.object_numbers.get(linked).copied();
        }
        let mapped = *self.object_numbers.get(format!("/usr{path}").as_str())?;
        self.objects[mapped as usize].build_id.is_empty().then_some(mapped)
    }

    /// Returns the object of a mapping that is not among the recording's objects; an empty path stands for an unknown
    /// one.
    pub(crate) fn mapped(&mut self, path: &str) -> u32 {
        self.object(path, "")
    }

    /// Returns the object of the executable, whose path may not be among the recording's objects.
    pub(crate) fn executable(&mut self, path: &str) -> u32 {
        let number = self.object(path, "");
        self.objects[number as usize].executable = true;
        number
    }
}

impl ImageNames<'_> {
    /// Returns the place that a slot's number stands for, if it stands for one.
    fn site(&self, number: u32) -> Option<Site> {
        let record = self.recording.site(number)?;
        let place = self.places.as_ref()?.find(record.return_avma, Ticks(record.first_ticks));
        Some(Site { object: place.object?, svma: place.svma? })
    }

    /// Returns the number of the executable among the run's objects.
    pub(crate) fn executable(&self) -> Option<u32> {
        let flagged =
            |o: &chase_recorder::reader::Object<'_>| o.record().flags & OBJECT_EXECUTABLE != 0;
        let object = self.recording.objects().find(flagged)?;
        self.object(object.record().id)
    }

    /// Returns the number among the run's objects of the recording's object `id`.
    pub(crate) fn object(&self, id: u32) -> Option<u32> {
        self.objects.get(&id).copied()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |at: u8| char::from_digit(at.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Returns the name of an object without a soname.
fn default_name(path: &str) -> &str {
    if path.is_empty() { "(unknown)" } else { file_name(path) }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}
