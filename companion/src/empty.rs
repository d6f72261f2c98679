//! The minimum cost of tracing system calls: a pair of eBPF programs that do nothing.

use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, include_bytes_aligned};

use crate::error::Error;
use crate::types;

static OBJECT: &[u8] = include_bytes_aligned!("../bpf/empty.bpf.o");

/// An empty program at each of `sys_enter` and `sys_exit`, attached as long as this lives.
pub struct EmptyPair(#[allow(dead_code, reason = "dropping it detaches")] Ebpf);

impl EmptyPair {
    /// Attaches the pair.
    ///
    /// # Errors
    /// If there is no BTF or no permission, or if the kernel refuses.
    pub fn attach() -> Result<Self, Error> {
        let btf = types::of_kernel(OBJECT)?;
        let mut loaded =
            types::loader(&btf).load(OBJECT).map_err(|source| Error::Load(Box::new(source)))?;
        for name in ["sys_exit", "sys_enter"] {
            attach(&mut loaded, name, &btf).map_err(|source| Error::Program { name, source })?;
        }
        Ok(Self(loaded))
    }
}

fn attach(loaded: &mut Ebpf, name: &str, btf: &Btf) -> Result<(), aya::programs::ProgramError> {
    let program = loaded.program_mut(name).ok_or(aya::programs::ProgramError::NotLoaded)?;
    let program: &mut BtfTracePoint = program.try_into()?;
    program.load(name, btf)?;
    program.attach().map(drop)
}
