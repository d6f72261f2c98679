//! Loaded objects and their imports.

use bytemuck::{Pod, Zeroable};

/// [`ObjectRecord::flags`]: the executable.
pub const OBJECT_EXECUTABLE: u32 = 1 << 0;
/// [`ObjectRecord::flags`]: libchase itself; not patched.
pub const OBJECT_CHASE: u32 = 1 << 1;
/// [`ObjectRecord::flags`]: loaded by `dlopen` or `dlmopen` and not at start.
pub const OBJECT_DLOPENED: u32 = 1 << 2;
/// [`ObjectRecord::flags`]: position-dependent (ELF type EXEC).
pub const OBJECT_FIXED: u32 = 1 << 3;

/// A loaded ELF file, first in an [`ChunkKind::Object`](super::ChunkKind::Object) chunk. It is followed in the chunk
/// by `segment_count` [`Segment`]s, `slot_count` [`SlotRecord`]s, and `strings_len` bytes of NUL-terminated strings,
/// into which `*_off` fields are offsets (0 is the empty string).
///
/// If an object is unloaded and loaded again at the same address, `unload_ticks` becomes 0 again. At another address
/// it gets a new chunk with the same `id`, and its slots keep their numbers; after many chunks, the last one is
/// rewritten.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ObjectRecord {
    /// Number of the object, from 0.
    pub id: u32,
    /// `OBJECT_*`.
    pub flags: u32,
    /// Added to an address in the file (svma) to get the address in the process (avma).
    pub bias: u64,
    /// When it was first seen.
    pub load_ticks: u64,
    /// When it was found unloaded; 0 while it is loaded.
    pub unload_ticks: u64,
    /// Number of its first slot.
    pub first_slot: u32,
    /// The number of its slots, numbered from `first_slot`.
    pub slot_count: u32,
    /// Loaded segments.
    pub segment_count: u32,
    /// Bytes of strings.
    pub strings_len: u32,
    /// The path as the dynamic linker knows it.
    pub path_off: u32,
    /// `DT_SONAME`, or empty.
    pub soname_off: u32,
    /// Used bytes of `build_id`.
    pub build_id_len: u32,
    /// Link-map namespace: 0 is the program's own.
    pub namespace: u32,
    /// GNU build id, zero-padded.
    pub build_id: [u8; 32],
    /// Numbers of imports that are not hooked, by [`SkipReason`].
    pub skipped: [u32; 16],
}

/// A loaded segment of an object.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Segment {
    /// Address in the file.
    pub svma: u64,
    /// Size in memory, bytes.
    pub len: u64,
    /// ELF `p_flags`: 1 execute, 2 write, 4 read.
    pub flags: u32,
    /// Padding.
    pub reserved: u32,
}

/// How calls of a slot are recorded.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotClass {
    /// Counted and timed.
    Timed = 0,
    /// Only counted: the function returns twice, never returns, or must see its real caller.
    Counted = 1,
    /// Always counted, and timed if the arguments allow it.
    Sometimes = 2,
}

/// [`SlotRecord::kind`]: an `R_X86_64_JUMP_SLOT`.
pub const SLOT_JUMP: u16 = 0;
/// [`SlotRecord::kind`]: an `R_X86_64_GLOB_DAT` that the object's code only uses for calls.
pub const SLOT_GLOBAL: u16 = 1;

/// An import of an object.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SlotRecord {
    /// Symbol name.
    pub name_off: u32,
    /// Symbol version, empty if there is none.
    pub version_off: u32,
    /// The object that contains the function, or [`NONE`](super::NONE).
    pub provider: u32,
    /// [`SlotClass`] as a number.
    pub class: u16,
    /// `SLOT_*`.
    pub kind: u16,
    /// Address of the GOT entry in the importer's file.
    pub got_svma: u64,
    /// Address of the function in the provider's file (the implementation, for an IFUNC).
    pub target_svma: u64,
}

/// Why an import is not hooked; index into [`ObjectRecord::skipped`].
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// A weak import without a definition.
    Undefined = 0,
    /// The entry's value is also used as a function pointer; or the code was not searched, because the object has
    /// much code and calls most functions through jump slots.
    Pointer = 1,
    /// It is bound to the object that imports it.
    Internal = 2,
    /// The function has a calling convention of its own.
    Convention = 3,
    /// `CHASE_LIBS` / `CHASE_EXCLUDE`.
    Filtered = 4,
    /// There were no more stubs.
    NoStub = 5,
    /// The page of the slot could not be made writable.
    Protected = 6,
    /// Private to the parts of the C library.
    Private = 7,
    /// Bound by the dynamic linker at its first call, to an object loaded later.
    Late = 8,
    /// Bound to a sanitizer's run-time library, whose functions inspect their caller's frame.
    Sanitizer = 9,
}

/// The names of the [`SkipReason`]s in reports, in order.
pub const SKIP_REASONS: [&str; 10] = [
    "nothing provides it",
    "used as a function pointer, or taken to be",
    "call within one object",
    "own calling convention",
    "left out by CHASE_LIBS or CHASE_EXCLUDE",
    "no stub left",
    "page could not be made writable",
    "private to the C library",
    "bound late to a dlopened object",
    "bound to a sanitizer, which looks at its callers",
];
