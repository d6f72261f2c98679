//! Why system calls can't be watched.

use std::io;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;

/// Why system calls can't be watched; each message is one line for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no type information.
    #[error(
        "the kernel has no BTF (/sys/kernel/btf/vmlinux): it must be built with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf,
    /// The type information can't be read.
    #[error("can't read the kernel's types: {0}")]
    Btf(io::Error),
    /// `bpf(2)` refused.
    #[error(
        "no privilege for bpf(2): be root, or give chase-companion the capabilities by \
         `setcap cap_bpf,cap_perfmon+ep`, or allow bpf(2) in the container"
    )]
    NotPermitted,
    /// The verifier rejected a program, or it could not be attached.
    #[error("the kernel refused the program for {name}: {source}")]
    Program {
        /// Name of the tracepoint.
        name: &'static str,
        /// The kernel's error.
        source: ProgramError,
    },
    /// The list of CPUs can't be read.
    #[error("can't read which CPUs there are: {0}")]
    Cpus(io::Error),
    /// The object could not be loaded.
    #[error("can't load the eBPF object: {0}")]
    Load(Box<EbpfError>),
    /// A map is missing or could not be used.
    #[error("map {name}: {source}")]
    Map {
        /// Name of the map.
        name: &'static str,
        /// The error.
        source: MapError,
    },
    /// A map could not be mapped into memory.
    #[error("can't map {name} into memory: {source}")]
    Mmap {
        /// Name of the map.
        name: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}
