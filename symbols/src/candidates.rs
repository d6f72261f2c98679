//! Where debug information may lie.

use std::path::{Path, PathBuf};

/// Directories to look for debug information in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugDirs {
    /// The user's, tried first: each as a build-id tree (`.build-id/xx/yyyy.debug`,
    /// `xx/yyyy.debug`, debuginfod's `xxyyyy/debuginfo`), as a mirror of absolute paths, and as a
    /// heap of files.
    pub user: Vec<PathBuf>,
    /// The system's: each as a build-id tree and as a mirror of absolute paths.
    pub system: Vec<PathBuf>,
}

impl DebugDirs {
    /// `user`'s directories, then `/usr/lib/debug`.
    #[must_use]
    pub fn new(user: Vec<PathBuf>) -> Self {
        Self { user, system: vec![PathBuf::from("/usr/lib/debug")] }
    }

    /// Files named after the build id `id`.
    pub(crate) fn by_build_id(&self, id: &[u8]) -> Vec<PathBuf> {
        // With fewer than two bytes there is no `xx/yyyy`.
        let [first, rest @ ..] = id else { return Vec::new() };
        if rest.is_empty() {
            return Vec::new();
        }
        let folder = format!("{first:02x}");
        let name: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = format!("{name}.debug");
        let mut paths = Vec::new();
        for dir in &self.user {
            paths.push(dir.join(".build-id").join(&folder).join(&file));
            paths.push(dir.join(&folder).join(&file));
            paths.push(dir.join(format!("{folder}{name}")).join("debuginfo"));
        }
        for dir in &self.system {
            paths.push(dir.join(".build-id").join(&folder).join(&file));
        }
        paths
    }

    /// Files that the `.gnu_debuglink` or `.gnu_debugaltlink` entry `link` of the file `origin`
    /// may mean.
    pub(crate) fn by_link(&self, origin: &Path, link: &Path) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for folder in folders(origin) {
            paths.push(folder.join(link));
            paths.push(folder.join(".debug").join(link));
            paths.extend(self.all().map(|dir| mirror(dir, &folder).join(link)));
        }
        if let Some(name) = link.file_name() {
            paths.extend(self.user.iter().map(|dir| dir.join(name)));
        }
        unique(paths)
    }

    /// Files that the user may have put there for the object at `origin`: the object itself with
    /// its debug information, or the separate file.
    pub(crate) fn by_path(&self, origin: &Path) -> Vec<PathBuf> {
        let Some(name) = origin.file_name() else { return Vec::new() };
        let mut separate = name.to_owned();
        separate.push(".debug");
        let mut paths = Vec::new();
        for dir in &self.user {
            for folder in folders(origin).iter().map(|folder| mirror(dir, folder)) {
                paths.push(folder.join(name));
                paths.push(folder.join(&separate));
            }
            paths.push(dir.join(name));
            paths.push(dir.join(&separate));
        }
        unique(paths)
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.user.iter().chain(&self.system)
    }
}

/// The folder of `origin` as it is written and, where links lead elsewhere (`/lib` to `/usr/lib`),
/// as it is.
fn folders(origin: &Path) -> Vec<PathBuf> {
    let written = origin.parent().map(Path::to_owned);
    let real = origin.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
    unique(written.into_iter().chain(real).filter(|folder| folder.is_absolute()).collect())
}

/// The place of the absolute path `folder` below `dir`.
fn mirror(dir: &Path, folder: &Path) -> PathBuf {
    dir.join(folder.strip_prefix("/").unwrap_or(folder))
}

fn unique(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = std::collections::HashSet::new();
    paths.into_iter().filter(|path| seen.insert(path.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().filter_map(|path| path.to_str()).collect()
    }

    #[test]
    fn each_layout_is_tried_user_first() {
        let dirs = DebugDirs { user: vec!["/u".into()], system: vec!["/s".into()] };
        assert_eq!(
            strings(&dirs.by_build_id(&[0xab, 0xcd, 0x01])),
            [
                "/u/.build-id/ab/cd01.debug",
                "/u/ab/cd01.debug",
                "/u/abcd01/debuginfo",
                "/s/.build-id/ab/cd01.debug"
            ]
        );
        assert_eq!(
            strings(&dirs.by_link(Path::new("/no/such/libx.so"), Path::new("libx.dbg"))),
            [
                "/no/such/libx.dbg",
                "/no/such/.debug/libx.dbg",
                "/u/no/such/libx.dbg",
                "/s/no/such/libx.dbg",
                "/u/libx.dbg"
            ]
        );
        assert_eq!(
            strings(&dirs.by_path(Path::new("/no/such/libx.so"))),
            ["/u/no/such/libx.so", "/u/no/such/libx.so.debug", "/u/libx.so", "/u/libx.so.debug"]
        );
    }

    #[test]
    fn an_id_too_short_for_a_path_has_none() {
        let dirs = DebugDirs::new(vec!["/u".into()]);
        assert!(dirs.by_build_id(&[]).is_empty());
        assert!(dirs.by_build_id(&[1]).is_empty());
    }
}
