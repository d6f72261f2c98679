//! The objects of this process, read as the hook reads them, beside what the dynamic linker says of them.

use std::ffi::{CStr, CString, c_int, c_void};
use std::vec::Vec;

use super::{Wanted, find_at, find_in, for_each_hash, hash_count};
use crate::elf::{HIDDEN, Image, ImportVersions, STT_GNU_IFUNC, STT_TLS, Version};

unsafe extern "C" fn add(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    images: *mut c_void,
) -> c_int {
    // SAFETY: the linker's description of an object, and the vector that `images` gave. No object of these tests is unloaded.
    unsafe {
        let (info, images) = (&*info, &mut *images.cast::<Vec<Image>>());
        let headers = info.dlpi_phdr as usize;
        images.extend(Image::new(info.dlpi_addr as usize, headers, usize::from(info.dlpi_phnum)));
    }
    0
}

/// The executable comes first.
pub(crate) fn images() -> Vec<Image> {
    let mut images = Vec::<Image>::new();
    // SAFETY: `add` takes such a vector.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut images).cast()) };
    images
}

fn c_library() -> Image {
    let is_it = |image: &Image| image.soname() == b"libc.so.6";
    images().into_iter().find(is_it).expect("the C library")
}

fn address_of(name: &CStr, version: &CStr) -> usize {
    // SAFETY: both are C strings.
    unsafe { libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), version.as_ptr()) as usize }
}

fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("no NUL")
}

/// Returns number and version of each symbol that others can be bound to.
fn definitions(image: &Image) -> Vec<(u32, Version)> {
    let mut all = Vec::new();
    for_each_hash(image, |_, index| {
        let number = image.version_number(index).expect("versions");
        let version = image.defined_version(number & !HIDDEN).expect("defined");
        // (A version has a symbol of its name, which is nothing's.)
        if image.name(image.symbol(index)) != version.name {
            all.push((index, version));
        }
    });
    all
}

#[test]
fn each_definition_is_where_the_dynamic_linker_finds_it() {
    let image = c_library();
    let all = definitions(&image);
    assert!(all.len() > 2_000 && all.len() <= hash_count(&image) + 64, "{}", all.len());
    let mut compared = 0;
    for (index, version) in all {
        let symbol = image.symbol(index);
        let name = image.name(symbol);
        let wanted = Wanted::new(name, Some(version));
        let found = find_in(&image, &wanted).expect("defined");
        assert_eq!(image.name(found), name);
        assert!(image.has_name(symbol, name) && !image.has_name(symbol, b"no such name"));
        assert!(find_at(&image, index, &wanted).is_some());
        // What a resolver, or a thread, decides is not in the table.
        if matches!(symbol.kind(), STT_GNU_IFUNC | STT_TLS) {
            continue;
        }
        let address = address_of(&c_string(name), &c_string(version.name));
        // (The linker's own functions come first for some names.)
        if image.contains(address) {
            assert_eq!(image.bias() + found.value as usize, address, "{:?}", c_string(name));
            compared += 1;
        }
    }
    assert!(compared > 1_500, "{compared}");
}

/// A name of two versions, of which the older one is hidden.
#[test]
fn versions_are_told_apart() {
    let image = c_library();
    let of = |version: &'static [u8]| {
        let is_it = |&(index, found): &(u32, Version)| {
            found.name == version && image.name(image.symbol(index)) == b"regexec"
        };
        let (index, version) = definitions(&image).into_iter().find(is_it).expect("defined");
        (index, find_in(&image, &Wanted::new(b"regexec", Some(version))).expect("found"))
    };
    let [(old_index, old), (new_index, new)] = [of(b"GLIBC_2.2.5"), of(b"GLIBC_2.3.4")];
    assert_ne!(old.value, new.value);
    let hidden = |index| image.version_number(index).expect("versions") & HIDDEN != 0;
    assert!(hidden(old_index) && !hidden(new_index));
    // Who asks for no version gets the base one, however old.
    let any = find_in(&image, &Wanted::new(b"regexec", None)).expect("found");
    assert!([old.value, new.value].contains(&any.value));
    assert!(find_in(&image, &Wanted::new(b"no_such_function", None)).is_none());
}

#[test]
fn an_executable_asks_for_what_its_libraries_have() {
    let all = images();
    let own = &all[0];
    assert!(own.needed().any(|name| name == b"libc.so.6"));
    let mut versions = ImportVersions::new(own);
    let mut found = 0;
    for relocation in own.relocations().filter(|relocation| relocation.symbol() != 0) {
        let symbol = own.symbol(relocation.symbol());
        let wanted = Wanted::new(own.name(symbol), versions.wanted(relocation.symbol()));
        found += usize::from(all.iter().any(|image| find_in(image, &wanted).is_some()));
    }
    assert!(found > 20, "{found}");
}

#[test]
fn code_is_in_executable_segments() {
    let image = c_library();
    let code = libc::getpid as *const () as usize;
    assert!(image.contains(code) && image.executes(code) && !image.executes(image.range().start));
    let (start, end) = image.relro();
    assert!(image.contains(start) && start < end && !image.is_relro(end) && image.is_relro(start));
    assert_eq!(image.build_id().len(), 20);
}
