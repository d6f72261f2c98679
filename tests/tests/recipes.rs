//! What docs/recipes.md says of containers, services and CI, as far as a machine without docker and systemd can show it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use chase_tests::launcher::chase;
use chase_tests::need;
use chase_tests::report;
use chase_tests::trial::libchase;
use tempfile::TempDir;

fn sh(directory: &Path, script: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(directory).env("LIBRARY", libchase());
    let path = std::env::var("PATH").unwrap_or_default();
    let programs = chase().parent().expect("a directory").display().to_string();
    shell.env("PATH", format!("{programs}:{path}:/usr/sbin")).env_remove("LD_PRELOAD");
    shell.output().expect("a shell")
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat()
}

fn recipes() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recipes.md"))
        .expect("docs/recipes.md")
}

/// A root directory, processes and mounts of its own, without capabilities: as `docker run` with `--cap-drop ALL` would have it.
const CONTAINER: &str = r#"
mkdir -p box/usr box/out box/proc box/dev box/tmp
for name in bin lib lib64 sbin; do
    if [ -L /$name ]; then cp -P /$name box/$name; else mkdir box/$name; mount --bind /$name box/$name; fi
done
touch box/libchase.so box/dev/null
mount --bind /usr box/usr
mount --bind /dev/null box/dev/null
mount --bind "$LIBRARY" box/libchase.so
mount -o remount,bind,ro box/libchase.so
mount --bind out box/out
mount -t proc proc box/proc
exec chroot box /usr/bin/env -i PATH=/usr/bin LD_PRELOAD=/libchase.so CHASE_OUTPUT=/out \
    /usr/bin/setpriv --bounding-set=-all --inh-caps=-all /bin/sh -c "$INSIDE"
"#;

fn contained(directory: &Path, inside: &str) -> Output {
    fs::create_dir_all(directory.join("out")).expect("a directory");
    let script = "unshare --mount --pid --fork sh -e -c \"$CONTAINER\"";
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(directory).env("LIBRARY", libchase());
    shell.env("CONTAINER", CONTAINER).env("INSIDE", inside).env_remove("LD_PRELOAD");
    shell.output().expect("a shell")
}

#[test]
fn a_container() {
    let what = "a container";
    if !need::root(what) || need::tool(what, "unshare").is_none() {
        return;
    }
    let scratch = TempDir::new().expect("a directory");
    let output = contained(scratch.path(), "ls /usr > /dev/null; echo number $$");
    if said(&output).contains("Operation not permitted") {
        return need::skip(what, "mounts are not permitted here");
    }
    assert!(output.status.success(), "{}", said(&output));
    // (Its first process is number 1; nothing is said on standard error.)
    assert_eq!(said(&output), "number 1\n");
    let out = scratch.path().join("out");
    assert!(report::calls(&out, "opendir") >= 1, "of ls, which sees what is mounted");
    let text = report::text(&out, &["not-seen", "--run", "all"]);
    assert!(text.contains("companion"), "{text}");

    // Where it may not write, it runs as it would.
    let output = contained(scratch.path(), "CHASE_OUTPUT=/nowhere ls / > /dev/null; echo $?");
    assert_eq!(said(&output), "0\n");
}

/// The drop-in as it stands in the text.
fn drop_in() -> String {
    let text = recipes();
    let lines = text.lines().skip_while(|line| line.trim() != "[Service]");
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).map(str::trim).collect();
    assert!(lines.len() > 1, "docs/recipes.md has no drop-in");
    lines.join("\n") + "\n"
}

#[test]
fn a_service() {
    let what = "a service";
    let scratch = TempDir::new().expect("a directory");
    let at = |name: &str| scratch.path().join(name);
    if need::tool(what, "systemd-analyze").is_some() {
        let unit = "[Unit]\nDescription=A service\n[Service]\nExecStart=/bin/true\n";
        fs::write(at("worker.service"), unit).expect("written");
        fs::create_dir(at("worker.service.d")).expect("a directory");
        let verify = |drop_in: &str| {
            fs::write(at("worker.service.d/chase.conf"), drop_in).expect("written");
            said(&sh(
                scratch.path(),
                "systemd-analyze verify --man=no ./worker.service 2>&1 || true",
            ))
        };
        let good = verify(&drop_in());
        assert!(!good.contains("chase.conf"), "{good}");
        let bad = verify("[Service]\nEnvironmental=nonsense\n");
        assert!(
            bad.contains("chase.conf") && bad.contains("Environmental"),
            "drop-ins are read: {bad}"
        );
    }
    // What the drop-in sets, for a user who owns nothing.
    let text = drop_in();
    let line = text.lines().find_map(|line| line.strip_prefix("Environment=")).expect("variables");
    let output = at("recordings");
    let state =
        text.lines().find_map(|line| line.strip_prefix("StateDirectory=")).expect("a place");
    let place = output.display().to_string();
    let variables = line.replace(&format!("%S/{state}"), &place);
    assert!(variables.contains(&place), "{variables}");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
    // systemd makes the directory for the user.
    let (prepare, user) = match need::root("a service's user") {
        true => ("install -d -m 755 -o 65534", "setpriv --reuid=65534 --clear-groups"),
        false => ("install -d -m 755", ""),
    };
    // (The loader finds libchase.so by its name where a package has put it; a copy stands for that, where everybody may read it.)
    fs::create_dir(at("lib")).expect("a directory");
    fs::copy(libchase(), at("lib/libchase.so")).expect("a copy");
    let script = format!(
        "{prepare} {place}\nexec {user} env -i PATH=/usr/bin LD_LIBRARY_PATH={} {variables} ls /usr",
        at("lib").display()
    );
    let ran = sh(scratch.path(), &script);
    assert!(ran.status.success() && ran.stderr.is_empty(), "{}", said(&ran));
    assert!(report::calls(&output, "opendir") >= 1);
}

/// A job that fails because of what changed, and one that does not.
#[test]
fn continuous_integration() {
    let scratch = TempDir::new().expect("a directory");
    let program =
        |calls: u32| format!("import zlib\\nfor i in range({calls}): zlib.crc32(b\"x\" * 6000)\\n");
    let job = |calls: u32| {
        let script = format!(
            "printf '{}' > bench.py\n\
             chase record -q -o new -- /usr/bin/python3 bench.py\n\
             if [ ! -d reference ]; then cp -r new reference; fi\n\
             status=0; chase-report compare reference new --top 3 --no-pager --verdicts chase.xml \
                 --fail-if 'fn:crc32.calls > +10%' || status=$?\n\
             rm -r new; exit $status",
            program(calls)
        );
        let output = sh(scratch.path(), &script);
        let xml = fs::read_to_string(scratch.path().join("chase.xml")).expect("verdicts");
        (output.status.code(), said(&output), xml)
    };
    for (calls, status, has_failed) in [(100, 0, false), (105, 0, false), (150, 3, true)] {
        let (code, said, xml) = job(calls);
        assert_eq!(code, Some(status), "{calls} calls: {said}");
        assert_eq!(xml.contains("<failure"), has_failed, "{calls} calls: {xml}");
        assert_eq!(said.contains("failed: fn:crc32.calls > +10%: it is +50"), has_failed, "{said}");
    }
}
