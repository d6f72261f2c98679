//! Function, file, line and inlined functions of programs whose debug information is in them.

mod build;

use std::path::Path;
use std::process::Command;

use build::{
    EXPORTED_LINE, LOCAL_LINE, Workshop, expected, key_of, place, run, svma_of, symbolizer,
};
use chase_symbols::{Source, shorten};

#[test]
fn pie_and_non_pie_and_compressed() {
    for options in [&["-pie", "-fPIE"][..], &["-no-pie"], &["-gz=zlib"], &["-gdwarf-4"]] {
        let workshop = Workshop::new();
        let program = workshop.c_program("program", options);
        let (key, symbols) = (key_of(&program), symbolizer(&[]));
        let at = |name| place(symbols.locate(&key, svma_of(&program, name)));
        assert_eq!(at("exported"), expected("exported", "program.c", EXPORTED_LINE), "{options:?}");
        assert_eq!(at("local"), expected("local", "program.c", LOCAL_LINE), "{options:?}");
        assert_eq!(symbols.status(&key).debug_info, Some(program));
    }
}

#[test]
fn inlined_functions_innermost_first() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &[]);
    let (key, symbols) = (key_of(&program), symbolizer(&[]));
    let start = svma_of(&program, "local");
    let chains: Vec<_> = (start..start + 32)
        .filter_map(|svma| symbols.locate(&key, svma).expect("symbols"))
        .filter(|location| location.frames.len() == 2)
        .collect();
    let chain = &chains.first().expect("code of the inlined function").frames;
    assert_eq!(chain[0].function.as_deref(), Some("inlined"));
    assert_eq!(chain[0].line, Some(3));
    assert_eq!(chain[1].function.as_deref(), Some("local"));
    assert_eq!(chain[1].line, Some(6));
}

/// What is between functions belongs to none.
#[test]
fn functions_of_stripped_programs_are_told_apart_by_their_starts() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &["-falign-functions=64"]);
    let [exported, local, main] = ["exported", "local", "main"].map(|name| svma_of(&program, name));
    run(Command::new("strip").arg(&program));
    let (key, symbols) = (key_of(&program), symbolizer(&[]));
    assert!(!matches!(symbols.locate(&key, local + 1), Ok(Some(_))), "it has no name");
    for start in [exported, local, main] {
        assert_eq!(symbols.function_start(&key, start), Some(start));
        assert_eq!(symbols.function_start(&key, start + 1), Some(start));
        assert_eq!(symbols.function_start(&key, start - 1), None);
    }
    assert_eq!(symbols.function_start(&key, 0), None);
    assert_eq!(symbols.function_start(&key, u64::MAX), None);
}

/// `main` ends with a call, so its return address is not in `main` any more.
#[test]
fn a_return_address_belongs_to_its_call() {
    let workshop = Workshop::new();
    let source = "void stop(void) __attribute__((noreturn));
void stop(void) { for (;;) ; }
void last(void) { stop(); }
void next(void) { }
int main(void) { last(); }
";
    let path = workshop.source("ends.c", source);
    let program = workshop.path("ends");
    let options = [
        "-g",
        "-O2",
        "-fno-inline",
        "-fno-ipa-pure-const",
        "-falign-functions=1",
        "-fno-optimize-sibling-calls",
        "-fno-reorder-functions",
        "-fno-toplevel-reorder",
    ];
    run(Command::new("gcc").args(options).arg(path).arg("-o").arg(&program));
    let (key, symbols) = (key_of(&program), symbolizer(&[]));
    let after_last = svma_of(&program, "next");
    assert_eq!(place(symbols.locate(&key, after_last)).0, "next");
    assert_eq!(place(symbols.locate_call(&key, after_last)), expected("last", "ends.c", 3));
}

#[test]
fn cpp_lambdas_and_templates() {
    let workshop = Workshop::new();
    let source = "#include <vector>
#include <string>
namespace app {
struct Job { std::vector<std::string> parts; };
template <class T, class F> __attribute__((noinline)) int each(const T& all, F f) {
    int n = 0;
    for (auto& one : all) n += f(one);
    return n;
}
}
int main(int argc, char** argv) {
    app::Job job; job.parts.push_back(argv[0]);
    return app::each(job.parts, [argc](const std::string& s) __attribute__((noinline)) { return (int)s.size() + argc; });
}
";
    let path = workshop.source("job.cpp", source);
    let program = workshop.path("job");
    run(Command::new("g++").args(["-g", "-O1", "-std=c++17"]).arg(path).arg("-o").arg(&program));
    let (key, symbols) = (key_of(&program), symbolizer(&[]));

    let (function, file, line) = place(symbols.locate(&key, svma_of(&program, "3app4each")));
    assert!(
        function.starts_with("int app::each<std::vector<std::__cxx11::basic_string<char"),
        "{function}"
    );
    assert_eq!((shorten(&function).as_ref(), file.as_str(), line), ("app::each<…>", "job.cpp", 5));

    let (function, file, line) = place(symbols.locate(&key, svma_of(&program, "ENKUlRK")));
    assert_eq!(shorten(&function), "main::{lambda#1}::operator()", "{function}");
    assert_eq!((file.as_str(), line), ("job.cpp", 13));
}

#[test]
fn rust_in_both_manglings() {
    let source = "use std::hint::black_box;
mod app {
    #[inline(never)]
    pub fn worker<T: Copy>(x: T) -> T {
        std::hint::black_box(x)
    }
}
fn main() {
    black_box(app::worker(black_box(1)));
    std::thread::spawn(|| { black_box(2); }).join().unwrap();
}
";
    for mangling in ["legacy", "v0"] {
        let workshop = Workshop::new();
        let path = workshop.source("job.rs", source);
        let program = workshop.path("job");
        let option = format!("-Csymbol-mangling-version={mangling}");
        let options: &[&str] = match mangling {
            "legacy" => &["-g", &option, "-Zunstable-options"],
            _ => &["-g", &option],
        };
        // Legacy mangling needs the switch only on newer compilers.
        let mut command = Command::new("rustc");
        command.args(options).env("RUSTC_BOOTSTRAP", "1").arg(path).arg("-o").arg(&program);
        run(&mut command);
        let (key, symbols) = (key_of(&program), symbolizer(&[]));
        let (function, file, line) = place(symbols.locate(&key, svma_of(&program, "worker")));
        assert_eq!(shorten(&function), "job::app::worker", "{mangling}: {function}");
        assert_eq!((file.as_str(), line), ("job.rs", 4));
        assert!(!function.contains("17h"), "{function}");
    }
}

#[test]
fn without_debug_information_the_symbol_tables_tell() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &["-g0", "-rdynamic"]);
    let (exported, local) = (svma_of(&program, "exported"), svma_of(&program, "local"));
    let key = key_of(&program);

    let found = symbolizer(&[]).locate(&key, local).expect("symbols").expect("local");
    assert_eq!(found.source, Source::SymbolTable);
    assert_eq!(found.frames.len(), 1);
    assert_eq!((found.frames[0].function.as_deref(), found.frames[0].line), (Some("local"), None));

    run(Command::new("strip").arg(&program));
    let symbols = symbolizer(&[]);
    let found = symbols.locate(&key, exported).expect("symbols").expect("exported");
    assert_eq!(found.source, Source::DynamicSymbols);
    assert_eq!(found.frames[0].function.as_deref(), Some("exported"));
    // The nearest symbol would be a wrong name.
    assert_eq!(symbols.locate(&key, local), Ok(None));
    assert_eq!(symbols.locate(&key, u64::MAX), Ok(None));
}

#[test]
fn packed_symbol_table() {
    if !build::there_is("xz") {
        return;
    }
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &[]);
    let local = svma_of(&program, "local");
    let key = key_of(&program);
    let mini = workshop.path("mini");
    run(Command::new("objcopy").args(["-S", "--keep-symbol=local"]).args([&program, &mini]));
    run(Command::new("xz").arg(&mini));
    run(Command::new("strip").arg(&program));
    let section = format!(".gnu_debugdata={}", mini.with_extension("xz").display());
    run(Command::new("objcopy").args(["--add-section", &section]).arg(&program));
    let found = symbolizer(&[]).locate(&key, local).expect("symbols").expect("local");
    assert_eq!(found.frames[0].function.as_deref(), Some("local"));
}

/// Whatever the file holds, there is an answer.
#[test]
fn damaged_files() {
    let workshop = Workshop::new();
    let program = workshop.c_program("program", &[]);
    let whole = std::fs::read(&program).expect("program read");
    let (key, svma) = (key_of(&program), svma_of(&program, "local"));
    let ask = |bytes: &[u8]| {
        std::fs::write(&program, bytes).expect("program written");
        let _ = symbolizer(&[]).locate(&key, svma);
        let any = chase_symbols::ObjectKey { build_id: Vec::new(), ..key.clone() };
        let _ = symbolizer(&[]).locate(&any, svma);
    };
    for len in (0..whole.len()).step_by(whole.len() / 150) {
        ask(&whole[..len]);
    }
    let mut state = 1_u64;
    for _ in 0..150 {
        let mut bytes = whole.clone();
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        ask(&bytes);
    }
    assert!(
        symbolizer(&[])
            .locate(&chase_symbols::ObjectKey { path: "/dev/zero".into(), ..key.clone() }, 0)
            .is_err()
    );
    assert!(
        symbolizer(&[])
            .locate(&chase_symbols::ObjectKey { path: Path::new("program").into(), ..key }, 0)
            .is_err()
    );
}
