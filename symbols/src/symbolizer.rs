//! Which function an address of an object is in.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::candidates::DebugDirs;
use crate::demangle::demangle;
use crate::dwarf::Dwarf;
use crate::identity::ObjectKey;
use crate::image::Image;
use crate::location::{CodeLocation, Frame, Source, Status, SymbolError};
use crate::search::Search;
use crate::symtab::SymbolTable;

/// Finds functions, files and lines. Objects are opened when first asked for, and kept.
pub struct Symbolizer {
    dirs: DebugDirs,
    objects: RefCell<HashMap<ObjectKey, Rc<Loaded>>>,
}

impl Symbolizer {
    /// Looks for debug information beside objects and in `dirs`.
    #[must_use]
    pub fn new(dirs: DebugDirs) -> Self {
        Self { dirs, objects: RefCell::default() }
    }

    /// What is at the address `svma` of `object`'s file; `None` if no function is known there.
    ///
    /// # Errors
    /// No file with symbols of the object was found.
    pub fn locate(
        &self,
        object: &ObjectKey,
        svma: u64,
    ) -> Result<Option<CodeLocation>, SymbolError> {
        let loaded = self.load(object);
        if loaded.dwarf.is_none() && loaded.functions.is_empty() {
            return Err(SymbolError::NoSymbols {
                path: object.path.clone(),
                build_id: object.build_id.clone(),
                status: Box::new(loaded.status.clone()),
            });
        }
        Ok(loaded.locate(svma))
    }

    /// As [`locate`](Self::locate), for the call before the return address `return_svma`: the
    /// address itself may already belong to the next line, or to the next function.
    ///
    /// # Errors
    /// No file with symbols of the object was found.
    pub fn locate_call(
        &self,
        object: &ObjectKey,
        return_svma: u64,
    ) -> Result<Option<CodeLocation>, SymbolError> {
        self.locate(object, return_svma.saturating_sub(1))
    }

    /// The address in `object`'s file, svma, of what is at `offset` bytes behind the file's beginning.
    #[must_use]
    pub fn svma_at(&self, object: &ObjectKey, offset: u64) -> Option<u64> {
        self.image(object)?.svma_at(offset)
    }

    /// The address, svma, at which the function begins that `svma` lies in, by what the object's file tells unwinders: also of
    /// functions without a name. The cold part of a function counts as one of its own.
    #[must_use]
    pub fn function_start(&self, object: &ObjectKey, svma: u64) -> Option<u64> {
        self.image(object)?.function_start(svma)
    }

    /// The variable that `svma` lies in, by the symbol tables: demangled name, and how far behind its start that is.
    #[must_use]
    pub fn variable(&self, object: &ObjectKey, svma: u64) -> Option<(String, u64)> {
        let loaded = self.load(object);
        let (start, _, name) = loaded.variables.find_range(svma)?;
        Some((demangle(name).into_owned(), svma - start))
    }

    /// What was found for `object`.
    #[must_use]
    pub fn status(&self, object: &ObjectKey) -> Status {
        self.load(object).status.clone()
    }

    /// What the object's own file holds, if it is there.
    pub(crate) fn image(&self, object: &ObjectKey) -> Option<Rc<Image>> {
        self.load(object).image.clone()
    }

    /// The function that `svma` lies in, by the symbol tables: start, length, demangled name.
    pub(crate) fn function_at(&self, object: &ObjectKey, svma: u64) -> Option<(u64, u64, String)> {
        let loaded = self.load(object);
        let (start, len, name) = loaded.functions.find_range(svma)?;
        Some((start, len, demangle(name).into_owned()))
    }

    fn load(&self, object: &ObjectKey) -> Rc<Loaded> {
        if let Some(loaded) = self.objects.borrow().get(object) {
            return Rc::clone(loaded);
        }
        let loaded = Rc::new(Loaded::open(object, &self.dirs));
        self.objects.borrow_mut().insert(object.clone(), Rc::clone(&loaded));
        loaded
    }
}

/// The opened files of one object.
struct Loaded {
    dwarf: Option<Dwarf>,
    functions: SymbolTable,
    variables: SymbolTable,
    image: Option<Rc<Image>>,
    status: Status,
}

impl Loaded {
    fn open(key: &ObjectKey, dirs: &DebugDirs) -> Self {
        let mut search = Search { key, dirs, status: Status::default() };
        let mut functions = SymbolTable::default();
        let mut variables = SymbolTable::of_variables();
        let own =
            if key.path.is_absolute() { search.first(vec![key.path.clone()], None) } else { None };
        search.status.object = own.as_ref().map(|(path, _)| path.clone());
        let (dwarf, separate) = match &own {
            Some((path, elf)) if elf.has_debug_info() => (search.dwarf(path, elf), None),
            own => {
                let separate = search.separate(own.as_ref().map(|(_, elf)| elf));
                (separate.as_ref().and_then(|(path, elf)| search.dwarf(path, elf)), separate)
            }
        };
        for (_, elf) in own.iter().chain(&separate) {
            elf.add_symbols(&mut functions);
            elf.add_symbols(&mut variables);
        }
        let image = own.map(|(_, elf)| Rc::new(Image::new(elf)));
        Self { dwarf, functions, variables, image, status: search.status }
    }

    fn locate(&self, svma: u64) -> Option<CodeLocation> {
        let mut frames = self.dwarf.as_ref().map(|dwarf| dwarf.frames(svma)).unwrap_or_default();
        let symbol = self.functions.find(svma);
        let known = frames.last().is_some_and(|frame| frame.function.is_some());
        if !known && symbol.is_none() {
            return None;
        }
        if frames.is_empty() {
            frames.push(Frame::default());
        }
        if let (Some((symbol, _)), Some(outermost)) = (symbol, frames.last_mut()) {
            let name = demangle(symbol);
            // GCC gives functions of local types no linkage name, so that their DWARF name has no
            // namespace and no parameters; the symbol has them.
            if !known || name != symbol {
                outermost.function = Some(name.into_owned());
            }
        }
        let source = if known { Source::DebugInfo } else { symbol?.1 };
        Some(CodeLocation { frames, source })
    }
}
