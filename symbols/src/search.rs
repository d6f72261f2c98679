//! The search for the files of one object.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::candidates::DebugDirs;
use crate::dwarf::Dwarf;
use crate::elf::Elf;
use crate::identity::{ObjectKey, verify};
use crate::location::Status;
use crate::refusal::{Reason, Refusal};

/// The search for one object's files.
pub(crate) struct Search<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) dirs: &'a DebugDirs,
    pub(crate) status: Status,
}

impl Search<'_> {
    /// The first of `paths` that is a file of the object; with `checksum`, only one that has it.
    pub(crate) fn first(
        &mut self,
        paths: Vec<PathBuf>,
        checksum: Option<u32>,
    ) -> Option<(PathBuf, Elf)> {
        for path in paths {
            let verified = match Elf::open(&path) {
                None => {
                    self.status.absent.push(path);
                    continue;
                }
                Some(elf) => {
                    elf.and_then(|elf| verify(self.key, &path, &elf, checksum).map(|()| elf))
                }
            };
            match verified {
                Ok(elf) => return Some((path, elf)),
                Err(reason) => self.status.refused.push(Refusal { path, reason }),
            }
        }
        None
    }

    /// A separate debug file, for the object `own` if that is there.
    pub(crate) fn separate(&mut self, own: Option<&Elf>) -> Option<(PathBuf, Elf)> {
        if let Some(found) = self.first(self.dirs.by_build_id(&self.key.build_id), None) {
            return Some(found);
        }
        if let Some((link, checksum)) = own.and_then(Elf::debug_link) {
            let mut paths = self.dirs.by_link(&self.key.path, &link);
            // A link to its own name would find the stripped object itself.
            paths.retain(|path| *path != self.key.path);
            if let Some(found) = self.first(paths, Some(checksum)) {
                return Some(found);
            }
        }
        self.first(self.dirs.by_path(&self.key.path), None)
    }

    pub(crate) fn dwarf(&mut self, path: &Path, elf: &Elf) -> Option<Dwarf> {
        if !elf.has_debug_info() {
            return None;
        }
        if self.is_overblown(path, elf) {
            return None;
        }
        // A package of split debug information is read along with the file that it is beside.
        let package = package_of(path);
        if let Some(Ok(elf)) = Elf::open(&package)
            && self.is_overblown(&package, &elf)
        {
            return None;
        }
        let alternate = elf.alternate_link().and_then(|link| self.alternate(path, &link));
        match Dwarf::open(path, alternate.as_deref()) {
            Ok(dwarf) => {
                self.status.debug_info = Some(path.to_owned());
                Some(dwarf)
            }
            Err(error) => {
                let reason = Reason::Unreadable(error);
                self.status.refused.push(Refusal { path: path.to_owned(), reason });
                None
            }
        }
    }

    /// Whether a file would take far more memory than debug information does; it is refused then.
    fn is_overblown(&mut self, path: &Path, elf: &Elf) -> bool {
        let Some(section) = elf.overblown_section() else { return false };
        let reason = Reason::Unreadable(format!("{section} unpacks to too much"));
        self.status.refused.push(Refusal { path: path.to_owned(), reason });
        true
    }

    /// The file that dwz moved parts of the debug file at `origin` to.
    fn alternate(
        &mut self,
        origin: &Path,
        (link, build_id): &(PathBuf, Vec<u8>),
    ) -> Option<PathBuf> {
        let key = ObjectKey { path: link.clone(), build_id: build_id.clone(), recorded: None };
        let mut paths = self.dirs.by_link(origin, link);
        paths.extend(self.dirs.by_build_id(build_id));
        let mut search = Search { key: &key, dirs: self.dirs, status: Status::default() };
        let found = search.first(paths, None);
        let found = found.filter(|(path, elf)| !search.is_overblown(path, elf));
        let found = found.map(|(path, _)| path);
        self.status.refused.append(&mut search.status.refused);
        if found.is_none() {
            self.status.missing_alternate = Some(link.clone());
        }
        found
    }
}

/// Where addr2line looks for the package of split debug information of `path`: `a.dwp` of `a`, `a.debug.dwp` of `a.debug`.
fn package_of(path: &Path) -> PathBuf {
    let mut extension = path.extension().map(OsStr::to_owned).unwrap_or_default();
    extension.push(if extension.is_empty() { "dwp" } else { ".dwp" });
    path.with_extension(extension)
}
