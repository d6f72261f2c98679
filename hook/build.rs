//! Linker options of `libchase.so`.

fn main() {
    // Run our constructor before those of all other objects, so that their calls are seen.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
    // Threads and signal handlers refer to the library until the process ends.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Nothing of ours may be missing at run time.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-undefined");
    // Run as a program, it says what it is.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-e,chase_entry");
    println!("cargo::rustc-cdylib-link-arg=-nostartfiles");
    println!("cargo::rustc-cdylib-link-arg=-nodefaultlibs");
}
