//! What descriptors of a process are of, as `/proc` has it while they are open.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use procfs::process::Process;

/// Names of the objects of one process: by descriptor and inode. One that was closed before it was asked for has none.
#[derive(Debug, Default)]
pub struct Objects {
    known: HashMap<(u32, u64), Vec<u8>>,
}

impl Objects {
    /// What the descriptor of process `pid`, as the companion sees it, is of, if that still has this inode: a path, or
    /// `tcp 127.0.0.1:6379 to 127.0.0.1:40000`, `unix /run/socket`, `pipe 4711`. Empty if that is not known.
    pub fn name(&mut self, pid: u32, descriptor: u32, inode: u64) -> &[u8] {
        self.known.entry((descriptor, inode)).or_insert_with(|| {
            let link = format!("/proc/{pid}/fd/{descriptor}");
            let is_it = fs::metadata(&link).is_ok_and(|metadata| metadata.ino() == inode);
            let path = fs::read_link(&link).ok().filter(|_| is_it);
            let path = path.map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default();
            if path.starts_with(b"pipe:[") {
                format!("pipe {inode}").into_bytes()
            } else if path.starts_with(b"socket:[") {
                socket(pid, inode).unwrap_or_else(|| format!("socket {inode}")).into_bytes()
            } else {
                path
            }
        })
    }
}

fn socket(pid: u32, inode: u64) -> Option<String> {
    let process = Process::new(pid.cast_signed()).ok()?;
    let ends = |kind, local: SocketAddr, remote: SocketAddr| match remote.port() {
        0 => format!("{kind} {local}"),
        _ => format!("{kind} {local} to {remote}"),
    };
    let tcp = process.tcp().into_iter().chain(process.tcp6()).flatten();
    let mut tcp = tcp.filter(|socket| socket.inode == inode);
    if let Some(found) = tcp.next() {
        return Some(ends("tcp", found.local_address, found.remote_address));
    }
    let udp = process.udp().into_iter().chain(process.udp6()).flatten();
    let mut udp = udp.filter(|socket| socket.inode == inode);
    if let Some(found) = udp.next() {
        return Some(ends("udp", found.local_address, found.remote_address));
    }
    let unix = process.unix().ok()?;
    let found = unix.into_iter().find(|socket| socket.inode == inode)?;
    Some(match found.path {
        Some(path) => format!("unix {}", path.display()),
        None => format!("unix {inode}"),
    })
}
