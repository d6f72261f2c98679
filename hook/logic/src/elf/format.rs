//! The structures of ELF files of 64 bits for x86-64, and their numbers.
#![allow(missing_docs, reason = "fields and numbers are those of elf(5)")]

/// A program header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub vaddr: u64,
    pub paddr: u64,
    pub filesz: u64,
    pub memsz: u64,
    pub align: u64,
}

/// A dynamic symbol.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    pub name: u32,
    pub info: u8,
    pub other: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

impl Symbol {
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.info & 0xf
    }

    #[must_use]
    pub fn binding(&self) -> u8 {
        self.info >> 4
    }
}

/// A relocation with addend.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    pub offset: u64,
    pub info: u64,
    pub addend: i64,
}

impl Relocation {
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.info as u32
    }

    #[must_use]
    pub fn symbol(&self) -> u32 {
        (self.info >> 32) as u32
    }
}

pub const PT_LOAD: u32 = 1;
pub(super) const PT_DYNAMIC: u32 = 2;
pub(super) const PT_NOTE: u32 = 4;
pub(super) const PT_PHDR: u32 = 6;
pub const PT_GNU_RELRO: u32 = 0x6474_e552;
pub const PF_X: u32 = 1;
pub const PF_W: u32 = 2;
pub const PF_R: u32 = 4;

pub const STT_OBJECT: u8 = 1;
pub const STT_TLS: u8 = 6;
pub const STT_GNU_IFUNC: u8 = 10;
pub const STB_LOCAL: u8 = 0;
pub const STB_WEAK: u8 = 2;
pub const SHN_UNDEF: u16 = 0;

pub const R_X86_64_GLOB_DAT: u32 = 6;
pub const R_X86_64_JUMP_SLOT: u32 = 7;

#[repr(C)]
pub(super) struct Dynamic {
    pub(super) tag: i64,
    pub(super) value: u64,
}

pub(super) const DT_NULL: i64 = 0;
pub(super) const DT_NEEDED: i64 = 1;
pub(super) const DT_PLTRELSZ: i64 = 2;
pub(super) const DT_HASH: i64 = 4;
pub(super) const DT_STRTAB: i64 = 5;
pub(super) const DT_SYMTAB: i64 = 6;
pub(super) const DT_RELA: i64 = 7;
pub(super) const DT_RELASZ: i64 = 8;
pub(super) const DT_RELACOUNT: i64 = 0x6fff_fff9;
pub(super) const DT_STRSZ: i64 = 10;
pub(super) const DT_SONAME: i64 = 14;
pub(super) const DT_RPATH: i64 = 15;
pub(super) const DT_SYMBOLIC: i64 = 16;
pub(super) const DT_DEBUG: i64 = 21;
pub(super) const DT_JMPREL: i64 = 23;
pub(super) const DT_RUNPATH: i64 = 29;
pub(super) const DT_FLAGS: i64 = 30;
pub(super) const DT_GNU_HASH: i64 = 0x6fff_fef5;
pub(super) const DT_VERSYM: i64 = 0x6fff_fff0;
pub(super) const DT_VERDEF: i64 = 0x6fff_fffc;
pub(super) const DT_VERNEED: i64 = 0x6fff_fffe;
pub(super) const DF_SYMBOLIC: u64 = 2;
