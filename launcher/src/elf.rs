//! What an executable's file tells of how it can be recorded.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use object::elf::{
    DT_NEEDED, EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PT_DYNAMIC, PT_INTERP, R_X86_64_64,
    R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
    STT_OBJECT,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{Endianness, Object, ObjectSection};

type Header = FileHeader64<Endianness>;

/// What a file is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Begins with `#!`: this is what runs, and what follows it there.
    Script(PathBuf),
    /// An x86-64 ELF executable.
    Program(Box<Program>),
    /// Something that can't be recorded, and why.
    Other(&'static str),
}

/// An executable.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The dynamic linker; none in a static program.
    pub(crate) interpreter: Option<PathBuf>,
    /// `DT_NEEDED`.
    pub(crate) needed: Vec<String>,
    /// Functions of other objects that are called through the PLT.
    pub(crate) called: u64,
    /// Functions of others whose address is in the GOT: called through it, or taken.
    pub(crate) in_got: u64,
    /// Functions of others whose address is in data.
    pub(crate) in_data: u64,
    /// Names of functions that are imported.
    pub(crate) imports: Vec<String>,
    /// What is like a library's name among the texts of one that opens libraries.
    pub(crate) named_libraries: Vec<String>,
    /// Has a symbol table beside the dynamic one.
    pub(crate) has_symbols: bool,
    /// Has debug information.
    pub(crate) has_lines: bool,
    /// Says that it is in another file (`.gnu_debuglink`).
    pub(crate) has_link: bool,
    /// Where its debug information may be found by.
    pub(crate) build_id: Option<String>,
    /// Made by Go.
    pub(crate) is_go: bool,
}

impl Program {
    /// Whether it may load libraries while it runs.
    pub(crate) fn opens_libraries(&self) -> bool {
        self.imports.iter().any(|name| ["dlopen", "dlmopen"].contains(&name.as_str()))
    }
}

/// Reads the file at `path`.
///
/// # Errors
/// When it can't be read, or is damaged.
pub(crate) fn read(path: &Path) -> anyhow::Result<Kind> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    if let Some(line) = bytes.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let words = String::from_utf8_lossy(line).into_owned();
        let mut words = words.split_whitespace();
        let interpreter = words.next().unwrap_or("/bin/sh");
        // env looks the next word up, after options and variables.
        if interpreter.ends_with("/env")
            && let Some(name) = words.find(|word| !word.starts_with('-') && !word.contains('='))
        {
            return Ok(Kind::Script(name.into()));
        }
        return Ok(Kind::Script(interpreter.into()));
    }
    const FIRST_LINES: usize = 512;
    if !bytes.starts_with(b"\x7fELF") {
        // A shell runs what is text.
        let is_text = !bytes.iter().take(FIRST_LINES).any(|&byte| byte == 0);
        return Ok(match is_text {
            true => Kind::Script("/bin/sh".into()),
            false => Kind::Other("it is no ELF file"),
        });
    }
    const CLASS: usize = 4;
    const CLASS_64: u8 = 2;
    if bytes.get(CLASS) != Some(&CLASS_64) {
        return Ok(Kind::Other("it is a 32-bit program: chase has a 64-bit library only"));
    }
    parse(&bytes).with_context(|| path.display().to_string())
}

fn parse(bytes: &[u8]) -> anyhow::Result<Kind> {
    let header = Header::parse(bytes)?;
    let endian = header.endian()?;
    if header.e_machine(endian) != EM_X86_64 {
        return Ok(Kind::Other("it is for another processor: chase is for x86-64"));
    }
    if ![ET_EXEC, ET_DYN].contains(&header.e_type(endian)) {
        return Ok(Kind::Other("it is no executable"));
    }
    let mut program = Program::default();
    let segments = header.program_headers(endian, bytes)?;
    let mut is_dynamic = false;
    for segment in segments {
        is_dynamic |= segment.p_type(endian) == PT_DYNAMIC;
        if segment.p_type(endian) == PT_INTERP {
            let path = segment.data(endian, bytes).unwrap_or_default();
            let path = String::from_utf8_lossy(path);
            program.interpreter = Some(PathBuf::from(path.trim_end_matches('\0')));
        }
    }
    if is_dynamic {
        let read = read_dynamic(bytes, header, endian, &mut program);
        // Of a library, or a static program, what can't be told is no obstacle.
        if program.interpreter.is_some() {
            read?;
        }
    }
    let sections = header.sections(endian, bytes)?;
    program.has_symbols = sections.iter().any(|section| section.sh_type(endian) == SHT_SYMTAB);
    let file = object::read::elf::ElfFile64::<Endianness>::parse(bytes)?;
    let has = |name: &str| file.section_by_name(name).is_some_and(|section| section.size() > 0);
    program.has_lines = has(".debug_line") || has(".zdebug_line");
    program.has_link = has(".gnu_debuglink");
    program.is_go = has(".note.go.buildid");
    if program.opens_libraries() {
        let texts = file.section_by_name(".rodata").and_then(|section| section.data().ok());
        program.named_libraries = library_names(texts.unwrap_or_default());
    }
    let build_id = file.build_id()?;
    program.build_id = build_id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
    Ok(Kind::Program(Box::new(program)))
}

fn read_dynamic(
    bytes: &[u8],
    header: &Header,
    endian: Endianness,
    program: &mut Program,
) -> anyhow::Result<()> {
    let sections = header.sections(endian, bytes)?;
    let symbols = sections.symbols(endian, bytes, object::elf::SHT_DYNSYM)?;
    let strings = symbols.strings();
    if let Some((dynamic, _)) = sections.dynamic(endian, bytes)? {
        for entry in dynamic {
            if entry.d_tag(endian) == DT_NEEDED {
                let name = entry.string(endian, strings).unwrap_or_default();
                program.needed.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    } else {
        bail!("its sections are missing, so its imports can't be told");
    }
    for section in sections.iter() {
        let Some((relocations, _)) = section.rela(endian, bytes)? else { continue };
        for relocation in relocations {
            let Some(index) = relocation.symbol(endian, false) else { continue };
            let symbol = symbols.symbol(index)?;
            let kind = relocation.r_type(endian, false);
            // What an executable imports has mostly no type yet in old ones; and of what is called through the PLT, Go's linker
            // says that it is data.
            let is_function = [STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE].contains(&symbol.st_type())
                || kind == R_X86_64_JUMP_SLOT && symbol.st_type() == STT_OBJECT;
            if !symbol.is_undefined(endian) || !is_function {
                continue;
            }
            match kind {
                R_X86_64_JUMP_SLOT => program.called += 1,
                R_X86_64_GLOB_DAT => program.in_got += 1,
                R_X86_64_64 => program.in_data += 1,
                _ => continue,
            }
            let name = String::from_utf8_lossy(symbol.name(endian, strings).unwrap_or_default());
            program.imports.push(name.into_owned());
        }
    }
    program.imports.sort_unstable();
    program.imports.dedup();
    Ok(())
}

/// Texts that are names of libraries, as `libz.so.1`, or paths that end in one.
fn library_names(texts: &[u8]) -> Vec<String> {
    const LONGEST: usize = 120;
    let is_name = |text: &&str| {
        let name = text.rsplit('/').next().unwrap_or(text);
        let stem = name.strip_prefix("lib").and_then(|rest| rest.split_once(".so"));
        stem.is_some_and(|(stem, version)| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
            let is_version = version.is_empty() || version.starts_with('.');
            !stem.is_empty()
                && stem.chars().all(is_part)
                && is_version
                && version.chars().all(|c| c == '.' || c.is_ascii_digit())
        })
    };
    let texts = texts.split(|&byte| byte == 0).filter(|text| text.len() <= LONGEST);
    let texts = texts.filter_map(|text| std::str::from_utf8(text).ok());
    let names = texts.filter(is_name).map(|text| text.rsplit('/').next().unwrap_or(text));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::library_names;

    #[test]
    fn names_of_libraries_are_told_from_other_texts() {
        let texts = b"libz.so.1\0no lib.so\0/usr/lib/libX11-xcb.so\0lib%s.so\0libz.so.1\0libc.so.6x\0library\0libstdc++.so.6";
        assert_eq!(library_names(texts), ["libX11-xcb.so", "libstdc++.so.6", "libz.so.1"]);
        assert!(library_names(b"\xfflibz.so\0").is_empty());
    }
}
