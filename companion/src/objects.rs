//! Finds out what descriptors of a process refer to.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use crate::shared::{Ends, Wait};

/// Paths of files of one process, by descriptor and inode.
#[derive(Debug, Default)]
pub struct Objects {
    paths: HashMap<(u32, u64), Vec<u8>>,
}

impl Objects {
    /// Returns what a thread waited for by a descriptor: a path, or `pipe 4711`, `socket 127.0.0.1:6379 to
    /// 127.0.0.1:40000`, `socket 4711`. For a file that is closed already, only the path's last component. `pid` is
    /// the process as the companion sees it.
    pub fn name(&mut self, pid: u32, wait: &Wait) -> Vec<u8> {
        let inode = wait.key.object;
        match wait.mode & libc::S_IFMT {
            libc::S_IFIFO => format!("pipe {inode}").into_bytes(),
            libc::S_IFSOCK => socket(wait).into_bytes(),
            _ => {
                let descriptor = wait.key.detail;
                let key = (descriptor, inode);
                let path = self.paths.entry(key).or_insert_with(|| path(pid, descriptor, inode));
                let last = wait.name.split(|&byte| byte == 0).next().unwrap_or_default();
                if path.is_empty() { last.to_owned() } else { path.clone() }
            }
        }
    }
}

/// Returns the path of a descriptor; empty if the descriptor has another inode by now.
fn path(pid: u32, descriptor: u32, inode: u64) -> Vec<u8> {
    let link = format!("/proc/{pid}/fd/{descriptor}");
    let is_it = fs::metadata(&link).is_ok_and(|metadata| metadata.ino() == inode);
    let path = fs::read_link(&link).ok().filter(|_| is_it);
    path.map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default()
}

fn socket(wait: &Wait) -> String {
    let ends: Ends = bytemuck::pod_read_unaligned(&wait.name[..size_of::<Ends>()]);
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
        _ => format!("socket {}", wait.key.object),
    }
}
