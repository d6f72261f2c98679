//! The components of a computation: its processes, what they read and write, and who started whom. Made from single
//! system calls.

mod picture;

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use chase_recorder::reader::SyscallsFile;
use chase_recorder::syscalls::SingleSyscallRow;
use serde::Serialize;

use crate::clock::Ns;
use crate::image::Image;
use crate::narration::of_recorded_threads;

pub use picture::{DrawnPrograms, Exchange, Picture};

/// Kinds of files, as in `stat(2)`.
const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFDIR: u32 = 0o040_000;
const S_IFSOCK: u32 = 0o140_000;

/// The components of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Components {
    /// The programs that ran, parents before children.
    pub programs: Vec<Program>,
    /// What they read, wrote and shared, sorted by bytes transferred.
    pub things: Vec<Thing>,
    /// Which program did what with which thing, sorted by thing and program.
    pub uses: Vec<Use>,
    /// A lower bound of the system calls that are missing for lack of room, so that transfers are underestimated.
    pub lost: u64,
}

/// A process, as the program that it ran last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its role by its title, as in `nginx: worker process`; empty if it has none.
    pub role: String,
    /// The arguments, beginning with the program's name.
    pub command: Vec<String>,
    /// The process that started it, by index.
    pub parent: Option<usize>,
    /// The number of threads seen.
    pub threads: usize,
    /// Its images, by number in [`Analysis::processes`](crate::Analysis::processes); the program is the last of them.
    pub images: Vec<usize>,
}

/// Something that programs use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thing {
    /// The kind of thing.
    pub kind: ThingKind,
    /// A path, a file's name, or the ends of a connection; empty for a pipe.
    pub name: String,
    /// Bytes read from it, by all programs.
    pub read: u64,
    /// Bytes written to it, by all programs.
    pub written: u64,
}

/// Kinds of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThingKind {
    /// A pipe, named or not.
    Pipe,
    /// A connection, or one end of it.
    Socket,
    /// A terminal, or another device.
    Device,
    /// Memory that several programs map.
    Memory,
    /// A file.
    File,
}

/// What a program did with a thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Use {
    /// The program, by index.
    pub program: usize,
    /// The thing, by index.
    pub thing: usize,
    /// The number of reads.
    pub reads: u64,
    /// Bytes read.
    pub read: u64,
    /// Time of the reads.
    pub read_ns: Ns,
    /// The number of writes.
    pub writes: u64,
    /// Bytes written.
    pub written: u64,
    /// Time of the writes.
    pub write_ns: Ns,
    /// Whether the program mapped it to share it.
    pub maps: bool,
}

/// An end of an internet connection: address and port.
type End = (Ipv6Addr, u16);

/// Distinguishes things.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Inode(u64, u32),
    /// The ends of a connection, the lower one first.
    Connection([End; 2]),
    /// The two ends of a connection within the machine, by inode, the lower one first.
    Pair([u64; 2]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Read,
    Write,
    Map,
}

/// Finds the components of a run; `None` if single system calls were not recorded.
#[must_use]
pub fn components(images: &[Image]) -> Option<Components> {
    let mut found = Components::default();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut of_image = Vec::with_capacity(images.len());
    for (number, image) in images.iter().enumerate() {
        let pid = image.recording.header().pid;
        let place = *places.entry(pid).or_insert_with(|| {
            found.programs.push(Program { pid, ..Program::default() });
            found.programs.len() - 1
        });
        of_image.push(place);
        let parent = image.parent.and_then(|parent| of_image.get(parent).copied());
        let program = &mut found.programs[place];
        (program.name, program.command) = (image.program(), image.command());
        program.role = image.role().unwrap_or_default();
        program.parent = program.parent.or(parent).filter(|&parent| parent != place);
        program.threads = program.threads.max(image.recording.threads().len());
        program.images.push(number);
    }
    let mut things = Things::default();
    let files = images.iter().filter_map(|image| image.syscalls.as_deref());
    files.flat_map(SyscallsFile::single_syscalls).for_each(|row| things.note_pair(&row));
    let mut is_told = false;
    for (image, &program) in images.iter().zip(&of_image) {
        let Some(file) = &image.syscalls else { continue };
        found.lost = found.lost.max(file.header().lost_single_syscalls);
        for row in of_recorded_threads(image, file) {
            is_told = true;
            things.add(program, &row);
        }
    }
    things.finish(&mut found);
    is_told.then_some(found)
}

#[derive(Default)]
struct Things {
    list: Vec<Thing>,
    by_key: HashMap<Key, usize>,
    uses: HashMap<(usize, usize), Use>,
    /// Paths by inode, from when they were opened.
    paths: HashMap<u64, String>,
    /// Connections within the machine, by the inode of each end: once one end is closed, the other one is no longer seen to have
    /// it. `None` for ends that have been of several.
    pairs: HashMap<u64, Option<[u64; 2]>>,
    /// The inode of each end of an internet connection; `None` where there have been several: a port that was free again. Then it is
    /// not known which end belongs to which.
    ends: HashMap<[End; 2], Option<u64>>,
}

impl Things {
    fn note_pair(&mut self, row: &SingleSyscallRow) {
        if let Some(ends) = connection(row).filter(|_| row.object != 0) {
            let known = self.ends.entry(ends).or_insert(Some(row.object));
            *known = known.filter(|&known| known == row.object);
        }
        let Some(pair) = pair(row) else { return };
        for end in pair {
            let known = self.pairs.entry(end).or_insert(Some(pair));
            *known = known.filter(|known| *known == pair);
        }
    }

    fn add(&mut self, program: usize, row: &SingleSyscallRow) {
        if row.object == 0 || row.mode & S_IFMT == S_IFDIR {
            return;
        }
        if matches!(row.number, 2 | 85 | 257 | 437) && row.result >= 0 {
            let text = &row.texts[0][..(row.lens[0] as usize).min(row.texts[0].len())];
            let path = text.split(|&byte| byte == 0).next().unwrap_or_default();
            self.paths.insert(row.object, String::from_utf8_lossy(path).into_owned());
        }
        let doing = match row.number {
            0 | 17 | 19 | 45 | 47 | 295 | 327 => Doing::Read,
            1 | 18 | 20 | 40 | 44 | 46 | 296 | 328 => Doing::Write,
            9 if row.arguments[3] & libc::MAP_SHARED as u64 != 0 => Doing::Map,
            _ => return,
        };
        let thing = self.thing(row);
        let used = self.uses.entry((program, thing)).or_default();
        (used.program, used.thing) = (program, thing);
        let bytes = row.result.max(0) as u64;
        let ns = row.left_ns.saturating_sub(row.entered_ns);
        match doing {
            Doing::Read => {
                used.reads += 1;
                used.read += bytes;
                used.read_ns.0 += ns;
                self.list[thing].read += bytes;
            }
            Doing::Write => {
                used.writes += 1;
                used.written += bytes;
                used.write_ns.0 += ns;
                self.list[thing].written += bytes;
            }
            Doing::Map => used.maps |= row.result >= 0,
        }
    }

    fn thing(&mut self, row: &SingleSyscallRow) -> usize {
        let ends = connection(row);
        let is_socket = row.mode & S_IFMT == S_IFSOCK;
        let known = || self.pairs.get(&row.object).copied().flatten().filter(|_| is_socket);
        let is_one = |[own, other]: [End; 2]| {
            let several = |ends| self.ends.get(&ends) == Some(&None);
            !several([own, other]) && !several([other, own])
        };
        let key = match (ends.filter(|&ends| is_one(ends)), pair(row).or_else(known)) {
            (Some(mut ends), _) => {
                ends.sort_unstable();
                Key::Connection(ends)
            }
            (None, Some(inodes)) => Key::Pair(inodes),
            (None, None) => Key::Inode(row.object, row.mode & S_IFMT),
        };
        let next = self.list.len();
        let place = *self.by_key.entry(key).or_insert(next);
        if place == next {
            let kind = match row.mode & S_IFMT {
                S_IFIFO => ThingKind::Pipe,
                S_IFSOCK => ThingKind::Socket,
                S_IFCHR => ThingKind::Device,
                _ => ThingKind::File,
            };
            self.list.push(Thing { kind, name: name_of(row, kind, ends), read: 0, written: 0 });
        }
        if let (ThingKind::File | ThingKind::Device, Some(path)) =
            (self.list[place].kind, self.paths.get(&row.object))
        {
            self.list[place].name.clone_from(path);
        }
        place
    }

    /// Files mapped by several programs are memory; things through which no byte went are left out.
    fn finish(self, found: &mut Components) {
        let mut uses: Vec<Use> = self.uses.into_values().collect();
        let mut mapped: HashMap<usize, usize> = HashMap::new();
        for used in uses.iter().filter(|used| used.maps) {
            *mapped.entry(used.thing).or_default() += 1;
        }
        let mut things: Vec<(usize, Thing)> = self.list.into_iter().enumerate().collect();
        for (place, thing) in &mut things {
            if mapped.get(place).is_some_and(|&programs| programs > 1) {
                thing.kind = ThingKind::Memory;
            }
        }
        things
            .retain(|(_, thing)| thing.read + thing.written > 0 || thing.kind == ThingKind::Memory);
        things.sort_by(|(a_place, a), (b_place, b)| {
            (b.read + b.written, a.kind, a_place).cmp(&(a.read + a.written, b.kind, b_place))
        });
        let new: HashMap<usize, usize> =
            things.iter().enumerate().map(|(new, (old, _))| (*old, new)).collect();
        uses.retain_mut(|used| match new.get(&used.thing) {
            Some(&place) => {
                used.thing = place;
                true
            }
            None => false,
        });
        uses.sort_by_key(|used| (used.thing, used.program));
        found.things = things.into_iter().map(|(_, thing)| thing).collect();
        found.uses = uses;
    }
}

/// Returns the two ends of an internet connection, by address and port. Those of version 4 are mapped into version 6, as the
/// kernel does for sockets that can have both.
fn connection(row: &SingleSyscallRow) -> Option<[End; 2]> {
    let name = &row.name;
    let number = |at: usize| u16::from_le_bytes([name[at], name[at + 1]]);
    let bytes = |at: usize| <[u8; 16]>::try_from(&name[at..at + 16]).unwrap_or_default();
    if row.mode & S_IFMT != S_IFSOCK {
        return None;
    }
    let address = |at: usize| match i32::from(number(0)) {
        libc::AF_INET => {
            let [a, b, c, d, ..] = bytes(at);
            Some(Ipv4Addr::new(a, b, c, d).to_ipv6_mapped())
        }
        libc::AF_INET6 => Some(Ipv6Addr::from(bytes(at))),
        _ => None,
    };
    let remote_port = u16::from_be(number(4));
    let ends = [(address(8)?, number(2)), (address(24)?, remote_port)];
    (remote_port != 0).then_some(ends)
}

/// Returns the inodes of the two ends of a connection within the machine (`AF_UNIX`), the lower one first, if it has another end.
fn pair(row: &SingleSyscallRow) -> Option<[u64; 2]> {
    let name = &row.name;
    let is_local = i32::from(u16::from_le_bytes([name[0], name[1]])) == libc::AF_UNIX;
    let peer = u64::from_le_bytes(<[u8; 8]>::try_from(&name[24..32]).unwrap_or_default());
    let is_pair = row.mode & S_IFMT == S_IFSOCK && is_local && peer != 0;
    is_pair.then_some([row.object.min(peer), row.object.max(peer)])
}

fn name_of(row: &SingleSyscallRow, kind: ThingKind, ends: Option<[End; 2]>) -> String {
    let end = |(address, port): End| match address.to_ipv4_mapped() {
        Some(address) => format!("{address}:{port}"),
        None => format!("[{address}]:{port}"),
    };
    match (kind, ends) {
        (ThingKind::Pipe, _) => String::new(),
        (ThingKind::Socket, Some([local, remote])) => format!("{} – {}", end(local), end(remote)),
        (ThingKind::Socket, None) => String::new(),
        _ => {
            let name = row.name.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        }
    }
}
