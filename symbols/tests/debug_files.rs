//! Stripped programs: where debug information is found, and when it is refused.

mod build;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use build::{LOCAL_LINE, Workshop, expected, key_of, place, run, svma_of, symbolizer};
use chase_symbols::{ObjectKey, Reason, Symbolizer};
use object::{Object as _, ObjectSection as _};

fn is_found(symbols: &Symbolizer, key: &ObjectKey, svma: u64) {
    assert_eq!(place(symbols.locate(key, svma)), expected("local", "program.c", LOCAL_LINE));
}

/// Moves `file` to `to`, whose directories are made.
fn put(file: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a directory")).expect("directory made");
    fs::rename(file, to).expect("moved");
}

#[test]
fn debug_link_beside_the_object_and_in_debug() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &[]);
    let svma = svma_of(&program, "local");
    let key = key_of(&program);
    let debug = workshop.path("program.dbg");
    workshop.split(&program, &debug);
    is_found(&symbolizer(&[]), &key, svma);
    put(&debug, &workshop.path(".debug/program.dbg"));
    let symbols = symbolizer(&[]);
    is_found(&symbols, &key, svma);
    let status = symbols.status(&key);
    assert_eq!(status.object.as_deref(), Some(&*program));
    assert_eq!(status.debug_info, Some(workshop.path(".debug/program.dbg")));
    fs::remove_file(workshop.path(".debug/program.dbg")).expect("removed");
    let error = symbolizer(&[]).locate(&key, svma).expect_err("nothing is left").to_string();
    assert!(error.contains("is stripped") && error.contains("program.dbg: not there"), "{error}");
}

/// Makes the debug information in a file say that it unpacks to a terabyte.
fn blow_up(path: &Path) {
    let mut bytes = fs::read(path).expect("read");
    let file = object::File::parse(&*bytes).expect("an object");
    let section = file.section_by_name(".debug_info").expect("debug information");
    let range = section.compressed_file_range().expect("a range");
    assert!(range.uncompressed_size > range.compressed_size, "it is compressed");
    // Before the data: the length that it unpacks to, and an alignment.
    let at = range.offset as usize - 16;
    assert_eq!(bytes[at..at + 8], range.uncompressed_size.to_le_bytes());
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    fs::write(path, bytes).expect("written");
}

fn is_refused_alone(symbols: &Symbolizer, key: &ObjectKey, path: &Path) {
    let refused = &symbols.status(key).refused;
    assert!(
        matches!(&refused[..], [refusal] if refusal.path == path
            && refusal.reason.to_string().contains(".debug_info")),
        "{refused:?}"
    );
}

/// A small file must not take gigabytes: compressed debug information says itself how much it is.
#[test]
fn debug_information_that_unpacks_to_too_much_is_refused() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &["-gz=zlib"]);
    let (key, svma) = (key_of(&program), svma_of(&program, "local"));
    is_found(&symbolizer(&[]), &key, svma);
    blow_up(&program);
    let symbols = symbolizer(&[]);
    let place = symbols.locate(&key, svma).expect("there are symbols").expect("a place");
    assert_eq!(place.frames[0].file, None, "names of the symbol table alone");
    is_refused_alone(&symbols, &key, &program);
}

/// Nor must what is read along with the debug information.
#[test]
fn files_beside_debug_information_that_unpack_to_too_much_are_refused() {
    let workshop = Workshop::new();
    let shared = workshop.c_program("shared.debug", &["-gz=zlib"]);
    let program = workshop.c_program("program", &["-O0"]);
    let link = workshop.path("link");
    let text = [&b"shared.debug\0"[..], &key_of(&shared).build_id].concat();
    fs::write(&link, text).expect("written");
    let section = format!(".gnu_debugaltlink={}", link.display());
    run(Command::new("objcopy").args(["--add-section", &section]).arg(&program));
    let (key, svma) = (key_of(&program), svma_of(&program, "local"));
    is_found(&symbolizer(&[]), &key, svma);
    assert_eq!(symbolizer(&[]).status(&key).missing_alternate, None);
    blow_up(&shared);
    let symbols = symbolizer(&[]);
    is_found(&symbols, &key, svma);
    is_refused_alone(&symbols, &key, &shared);
    assert_eq!(symbols.status(&key).missing_alternate, Some("shared.debug".into()));

    let plain = workshop.c_program("plain", &[]);
    let key = key_of(&plain);
    let package = workshop.path("plain.dwp");
    fs::rename(&shared, &package).expect("moved");
    let symbols = symbolizer(&[]);
    let place = symbols.locate(&key, svma_of(&plain, "local")).expect("there are symbols");
    assert_eq!(place.expect("a place").frames[0].file, None, "names of the symbol table alone");
    is_refused_alone(&symbols, &key, &package);
}

#[test]
fn every_layout_of_a_debug_directory() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &[]);
    let svma = svma_of(&program, "local");
    let key = key_of(&program);
    let hex: String = key.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let mirror = program.strip_prefix("/").expect("absolute").display().to_string();
    let debug = workshop.path("program.dbg");
    workshop.split(&program, &debug);
    let dir = workshop.path("side");
    let layouts = [
        format!(".build-id/{}/{}.debug", &hex[..2], &hex[2..]),
        format!("{}/{}.debug", &hex[..2], &hex[2..]),
        format!("{hex}/debuginfo"),
        "program.dbg".to_owned(),
        "program.debug".to_owned(),
        "program".to_owned(),
        format!("{mirror}.debug"),
        format!("{mirror}.dbg"),
    ];
    let mut at = debug;
    for layout in layouts {
        put(&at, &dir.join(&layout));
        at = dir.join(layout);
        is_found(&symbolizer(&[&dir]), &key, svma);
    }
    // By build id the object itself is not even needed.
    put(&at, &dir.join(format!(".build-id/{}/{}.debug", &hex[..2], &hex[2..])));
    fs::remove_file(&program).expect("removed");
    is_found(&symbolizer(&[&dir]), &key, svma);
    let error = symbolizer(&[]).locate(&key, svma).expect_err("nothing is left").to_string();
    assert!(error.contains(&hex) && error.contains("program: not there"), "{error}");
}

#[test]
fn a_rebuilt_program_gives_no_names() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &[]);
    let (key, svma) = (key_of(&program), svma_of(&program, "local"));
    let kept = workshop.path("kept/program");
    fs::create_dir_all(workshop.path("kept")).expect("directory made");
    fs::copy(&program, &kept).expect("copied");
    workshop.c_program("program", &["-DOTHER", "-O0"]);
    let rebuilt = key_of(&program).build_id;

    let error = symbolizer(&[]).locate(&key, svma).expect_err("refused").to_string();
    assert!(error.contains("is another build"), "{error}");
    let symbols = symbolizer(&[&workshop.path("kept")]);
    is_found(&symbols, &key, svma);
    let status = symbols.status(&key);
    assert_eq!(status.object, None);
    assert_eq!(status.debug_info, Some(kept));
    let reason = Reason::OtherBuild { found: rebuilt, expected: key.build_id };
    assert_eq!(status.refused[0].path, program);
    assert_eq!(status.refused[0].reason, reason);
}

#[test]
fn the_checksum_counts_where_there_is_no_build_id() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &["-Wl,--build-id=none"]);
    let svma = svma_of(&program, "local");
    let debug = workshop.path("program.dbg");
    workshop.split(&program, &debug);
    let key = key_of(&program);
    assert!(key.build_id.is_empty());
    is_found(&symbolizer(&[]), &key, svma);
    let mut bytes = fs::read(&debug).expect("read");
    bytes.push(0);
    fs::write(&debug, bytes).expect("written");
    let symbols = symbolizer(&[]);
    assert!(symbols.locate(&key, svma).is_err());
    let refused = &symbols.status(&key).refused[0];
    assert!(matches!(refused.reason, Reason::Checksum { .. }), "{refused}");
}

#[test]
fn a_file_without_build_id_must_not_be_younger() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &["-Wl,--build-id=none"]);
    let svma = svma_of(&program, "local");
    let hour = Duration::from_secs(3600);
    let key = |recorded| ObjectKey { recorded: Some(recorded), ..key_of(&program) };
    is_found(&symbolizer(&[]), &key(SystemTime::now() + hour), svma);
    let before = key(SystemTime::now() - hour);
    let symbols = symbolizer(&[]);
    assert!(symbols.locate(&before, svma).is_err());
    assert_eq!(symbols.status(&before).refused[0].reason, Reason::Younger);
}

/// Debian moves what several debug files share to one more file.
#[test]
fn shared_debug_information() {
    if !build::there_is("dwz") {
        return;
    }
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &[]);
    let other = workshop.path("other");
    fs::copy(&program, &other).expect("copied");
    let (key, svma) = (key_of(&program), svma_of(&program, "local"));
    let shared = workshop.path("shared.debug");
    let link = shared.display().to_string();
    run(Command::new("dwz").args(["-m", &link, "-M", &link]).args([&program, &other]));
    is_found(&symbolizer(&[]), &key, svma);
    fs::remove_file(&shared).expect("removed");
    let symbols = symbolizer(&[]);
    // Names may be gone with it, but the symbol table still has this one.
    assert_eq!(place(symbols.locate(&key, svma)).0, "local");
    assert_eq!(symbols.status(&key).missing_alternate, Some(shared));
}
