//! Finds out what descriptors of a process refer to.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use crate::shared::{Ends, Futex, IN_FILE, Wait};

/// Names of what the descriptors of one process refer to.
#[derive(Debug, Default)]
pub struct Objects {
    /// Paths of files, by descriptor and inode.
    paths: HashMap<(u32, u64), Vec<u8>>,
    /// Names of those sockets within the machine that were asked for, by inode; empty for those that have none.
    sockets: HashMap<u64, Vec<u8>>,
    /// How often the list of all sockets was read.
    lists: u32,
}

/// Returns what names a futex that processes share: `shared DEVICE:INODE+OFFSET`, in hexadecimal; nothing for others.
pub fn futex(wait: &Wait) -> Vec<u8> {
    let Futex { inode, offset, device, place } =
        bytemuck::pod_read_unaligned(&wait.name[..size_of::<Futex>()]);
    match place {
        IN_FILE => format!("shared {device:x}:{inode:x}+{offset:x}").into_bytes(),
        _ => Vec::new(),
    }
}

/// The list of all sockets is read at most so often for a process: it may be long.
const MOST_LISTS: u32 = 100;

impl Objects {
    /// Returns what a thread waited for by a descriptor: a path, or `pipe 4711`, `socket 127.0.0.1:6379 to
    /// 127.0.0.1:40000`, `socket /run/db.sock`, `socket 4711 to 4712`, `socket 4711`. For a file that is closed already, only the
    /// path's last component. `pid` is the process as the companion sees it.
    pub fn name(&mut self, pid: u32, wait: &Wait) -> Vec<u8> {
        let inode = wait.key.object;
        match wait.mode & libc::S_IFMT {
            libc::S_IFSOCK => self.socket(pid, wait),
            mode => {
                let descriptor = wait.key.detail;
                let key = (descriptor, inode);
                let path = self.paths.entry(key).or_insert_with(|| path(pid, descriptor, inode));
                let last = wait.name.split(|&byte| byte == 0).next().unwrap_or_default();
                match mode {
                    // (Of one without a name, the kernel says what it is, as if that were its path.)
                    libc::S_IFIFO if !path.starts_with(b"/") && last.is_empty() => {
                        format!("pipe {inode}").into_bytes()
                    }
                    libc::S_IFIFO if !path.starts_with(b"/") => last.to_owned(),
                    _ if path.is_empty() => last.to_owned(),
                    _ => path.clone(),
                }
            }
        }
    }

    fn socket(&mut self, pid: u32, wait: &Wait) -> Vec<u8> {
        let ends: Ends = bytemuck::pod_read_unaligned(&wait.name[..size_of::<Ends>()]);
        if i32::from(ends.family) != libc::AF_UNIX {
            return internet_socket(&ends, wait.key.object).into_bytes();
        }
        let [own, peer] =
            [wait.key.object, u64::from_ne_bytes(ends.remote[..8].try_into().unwrap_or_default())];
        self.look_for_sockets(pid, [own, peer]);
        // A server has its name for each of its connections, and a client has none.
        let named = |inode| self.sockets.get(inode).filter(|name| !name.is_empty());
        match [own, peer].iter().find_map(named) {
            Some(name) => [b"socket ", &**name].concat(),
            None if peer == 0 => format!("socket {own}").into_bytes(),
            None => format!("socket {own} to {peer}").into_bytes(),
        }
    }

    /// Looks for the names of sockets within the machine: a path, or `@` and a name that is in no directory.
    fn look_for_sockets(&mut self, pid: u32, inodes: [u64; 2]) {
        let is_new = |inode: &u64| *inode != 0 && !self.sockets.contains_key(inode);
        if self.lists == MOST_LISTS || !inodes.iter().any(is_new) {
            return;
        }
        self.lists += 1;
        // One that isn't listed is not looked for again.
        for inode in inodes {
            self.sockets.entry(inode).or_default();
        }
        let listed = fs::read(format!("/proc/{pid}/net/unix")).unwrap_or_default();
        let all = listed.split(|&byte| byte == b'\n').filter_map(listed_socket);
        self.sockets.extend(all.filter(|(inode, _)| inodes.contains(inode)));
    }
}

/// Parses a line of `/proc/net/unix`: the seventh column is the inode, and then comes the name, if there is one.
fn listed_socket(line: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut rest = line;
    let mut column = || {
        let start = rest.iter().position(|&byte| byte != b' ')?;
        let end = rest[start..].iter().position(|&byte| byte == b' ');
        let (found, after) = rest[start..].split_at(end.unwrap_or(rest.len() - start));
        rest = after;
        Some(found)
    };
    for _ in 0..6 {
        column()?;
    }
    let inode = std::str::from_utf8(column()?).ok()?.parse().ok()?;
    Some((inode, rest.strip_prefix(b" ").unwrap_or(rest).to_owned()))
}

/// Returns the path of a descriptor; empty if the descriptor has another inode by now.
fn path(pid: u32, descriptor: u32, inode: u64) -> Vec<u8> {
    let link = format!("/proc/{pid}/fd/{descriptor}");
    let is_it = fs::metadata(&link).is_ok_and(|metadata| metadata.ino() == inode);
    let path = fs::read_link(&link).ok().filter(|_| is_it);
    path.map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default()
}

fn internet_socket(ends: &Ends, inode: u64) -> String {
    let address = |bytes: [u8; 16], port| {
        let [a, b, c, d, ..] = bytes;
        let address = match i32::from(ends.family) {
            libc::AF_INET => IpAddr::from(Ipv4Addr::new(a, b, c, d)),
            libc::AF_INET6 => IpAddr::from(Ipv6Addr::from(bytes)).to_canonical(),
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    };
    match (
        address(ends.local, ends.local_port),
        address(ends.remote, u16::from_be(ends.remote_port)),
    ) {
        (Some(local), Some(remote)) if remote.port() != 0 => format!("socket {local} to {remote}"),
        (Some(local), _) => format!("socket {local}"),
        _ => format!("socket {inode}"),
    }
}

#[cfg(test)]
mod tests {
    use super::listed_socket;

    #[test]
    fn sockets_are_listed_with_their_names_if_they_have_one() {
        let named =
            b"ffff9d0000000000: 00000002 00000000 00010000 0001 01 24047 /run/db with blank.sock";
        assert_eq!(listed_socket(named), Some((24_047, b"/run/db with blank.sock".to_vec())));
        let unnamed = b"0000000000000000: 00000003 00000000 00000000 0001 03    98";
        assert_eq!(listed_socket(unnamed), Some((98, Vec::new())));
        let heading = b"Num       RefCount Protocol Flags    Type St Inode Path";
        for line in [&heading[..], b"", b"a b c"] {
            assert_eq!(listed_socket(line), None);
        }
    }
}
