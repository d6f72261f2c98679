//! What threads run, by name.

use chase_analyzer::{Closure, CodeAddress, Naming, NamingPlaces, ThreadOrigin, ThreadRow};
use chase_symbols::{ThreadKind, shorten};

use crate::places::{AddressKind, Files, Places, file_name, is_of_library, key};
use crate::thread_functions;

/// Names start routines from symbol tables.
pub(crate) struct Routines<'r> {
    pub(crate) files: Files<'r>,
    pub(crate) places: &'r Places,
}

impl Routines<'_> {
    fn function(
        &self,
        thread: &ThreadRow,
        address: Option<&CodeAddress>,
        kind: AddressKind,
    ) -> Option<String> {
        let place = self.places.find(self.files, thread.process, address?, kind);
        place.function.map(|function| shorten(&function).into_owned())
    }
}

impl Naming for Routines<'_> {
    fn runs(&self, thread: &ThreadRow) -> Option<String> {
        let found = self.places.thread_function(self.files, thread);
        if thread.origin == ThreadOrigin::Found {
            let own = found.filter(|function| !function.is_of_runtime());
            return own.map(|function| thread_functions::short_name(&function));
        }
        found
            .map(|function| thread_functions::short_name(&function))
            .or_else(|| self.function(thread, thread.start_routine.as_ref(), AddressKind::Function))
    }

    /// Closures of one Rust function have one name.
    fn closure(&self, thread: &ThreadRow) -> Option<Closure> {
        let function = self.places.thread_function(self.files, thread)?;
        let is_closure = function.kind == ThreadKind::Rust && function.name.contains("{{closure}}");
        let (_, svma) = function.code.filter(|_| is_closure)?;
        let is_in_program = function.source.as_ref().is_some_and(|(file, _)| !is_of_library(file));
        let source = function.source.map(|(file, line)| format!("{}:{line}", file_name(&file)));
        Some(Closure { svma, source, is_in_program })
    }

    fn takes_any_task(&self, thread: &ThreadRow) -> bool {
        let found = self.places.thread_function(self.files, thread);
        found.is_some_and(|function| function.kind == ThreadKind::Go)
    }

    fn created_in(&self, thread: &ThreadRow) -> Option<String> {
        let site = self.places.creation_site(self.files, thread);
        self.function(thread, site.as_ref(), AddressKind::ReturnAddress)
    }
}

impl NamingPlaces for Routines<'_> {
    fn functions(&self, process: usize, site: &CodeAddress) -> Vec<String> {
        let place = self.places.find(self.files, process, site, AddressKind::ReturnAddress);
        let inlined = place.inlined.into_iter().filter_map(|inlined| inlined.function);
        inlined.chain(place.function).collect()
    }

    fn variable(&self, process: usize, address: &CodeAddress) -> Option<String> {
        let object = self.files.objects.get(address.object? as usize)?;
        let key = key(object, self.files.images.get(process));
        let (name, offset) = self.places.symbolizer.variable(&key, address.svma?)?;
        let name = shorten(&name);
        Some(if offset == 0 { name.into_owned() } else { format!("{name}+{offset:#x}") })
    }
}
