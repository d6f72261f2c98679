//! Functions with an argument that says how much work a call does: how many bytes or items, or how long to wait at
//! most; or on what: the path of a file, the name of a host.
//!
//! Arguments are as declared in the C headers and manual pages (`man 3 fread`; zlib.h, bzlib.h, lzma.h, zstd.h,
//! lz4.h, openssl/evp.h, openssl/ssl.h, sqlite3.h, cblas.h, Python's C API). Paths and names of hosts are read after
//! calls that took long. Nothing else that pointers point to is read.

use chase_format::layout::{
    ARGUMENT_BYTES, ARGUMENT_HOST, ARGUMENT_ITEMS, ARGUMENT_LEVEL, ARGUMENT_MS, ARGUMENT_PATH,
    ARGUMENT_S, ARGUMENT_US,
};

use crate::names::Names;

/// Which argument of a call it is, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its index among the integer and pointer arguments, from 0.
    first: u8,
    /// The index of the argument that it is multiplied by.
    second: Option<u8>,
    /// Whether it is an `int`, so that the upper half of the register is undefined.
    pub is_int: bool,
    /// `ARGUMENT_*`.
    pub meaning: u16,
}

/// Offsets from the return address at which the call path saves rdi, rsi, rdx, rcx, r8, r9.
const PLACES: [i8; 6] = [-40, -32, -16, -24, -48, -56];

impl Argument {
    /// Whether it is the address of a text.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.meaning, ARGUMENT_PATH | ARGUMENT_HOST)
    }

    /// Returns the offset of the saved register from the return address, in bytes.
    #[must_use]
    pub const fn place(&self) -> i8 {
        PLACES[self.first as usize % PLACES.len()]
    }

    /// Returns the offset of the argument that it is multiplied by; 0: none.
    #[must_use]
    pub const fn second_place(&self) -> i8 {
        match self.second {
            Some(second) => PLACES[second as usize % PLACES.len()],
            None => 0,
        }
    }
}

/// Returns the argument of the function `name`, of any library; `None` if it has none.
#[must_use]
pub fn argument_of(name: &[u8]) -> Option<Argument> {
    TABLE.get(name)
}

/// A number of bytes.
const fn size(number: u8) -> Argument {
    Argument { first: number, second: None, is_int: false, meaning: ARGUMENT_BYTES }
}

/// A number of bytes as an `int`; it may be -1, for: up to the end of a string.
const fn int_size(number: u8) -> Argument {
    Argument { first: number, second: None, is_int: true, meaning: ARGUMENT_BYTES }
}

/// A number of pieces of a number of bytes each.
const fn pieces(first: u8, second: u8) -> Argument {
    Argument { first, second: Some(second), is_int: false, meaning: ARGUMENT_BYTES }
}

/// A number of items.
const fn items(number: u8) -> Argument {
    Argument { first: number, second: None, is_int: false, meaning: ARGUMENT_ITEMS }
}

const fn int_items(number: u8) -> Argument {
    Argument { first: number, second: None, is_int: true, meaning: ARGUMENT_ITEMS }
}

/// The longest time to wait, an `int` in this unit.
const fn timeout(number: u8, unit: u16) -> Argument {
    Argument { first: number, second: None, is_int: true, meaning: unit }
}

const fn level(number: u8) -> Argument {
    Argument { first: number, second: None, is_int: true, meaning: ARGUMENT_LEVEL }
}

/// The path of a file.
const fn path(number: u8) -> Argument {
    Argument { first: number, second: None, is_int: false, meaning: ARGUMENT_PATH }
}

/// The name of a host.
const fn host(number: u8) -> Argument {
    Argument { first: number, second: None, is_int: false, meaning: ARGUMENT_HOST }
}

static TABLE: Names<Argument, 512> = Names::new(&[
    // Allocations. `operator new` takes a size, also the variants with an alignment or `nothrow` behind it.
    (
        b"malloc valloc pvalloc g_malloc g_malloc0 g_try_malloc g_slice_alloc g_slice_alloc0 av_malloc av_mallocz CRYPTO_malloc CRYPTO_zalloc PyMem_Malloc PyMem_RawMalloc \
          PyObject_Malloc je_malloc mi_malloc tc_malloc __rust_alloc __rust_alloc_zeroed \
          sqlite3_malloc64 sbrk \
          _Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t",
        size(0),
    ),
    (b"sqlite3_malloc", int_size(0)),
    (b"calloc PyMem_Calloc PyMem_RawCalloc PyObject_Calloc g_malloc_n g_malloc0_n je_calloc mi_calloc", pieces(0, 1)),
    (
        b"realloc memalign aligned_alloc g_realloc PyMem_Realloc PyMem_RawRealloc PyObject_Realloc CRYPTO_realloc \
          je_realloc mi_realloc ngx_palloc ngx_pnalloc apr_palloc MemoryContextAlloc",
        size(1),
    ),
    (b"reallocarray recallocarray", pieces(1, 2)),
    (b"posix_memalign", size(2)),
    (b"mmap mmap64 munmap madvise msync mlock munlock mprotect", size(1)),
    (b"mremap", size(2)),
    // Memory and strings.
    (
        b"memcpy memmove memset memcmp mempcpy memchr memrchr bcmp bcopy \
          __memcpy_chk __memmove_chk __memset_chk __mempcpy_chk strncpy strncmp strncat strncasecmp stpncpy \
          __strncpy_chk __strncat_chk strxfrm",
        size(2),
    ),
    (b"bzero explicit_bzero strnlen memmem", size(1)),
    (b"wmemcpy wmemmove wmemset wmemcmp wcsncpy wcsncmp", items(2)),
    // Files and sockets. The number of bytes requested, which may be more than were transferred.
    (
        b"read write pread pwrite pread64 pwrite64 __read_chk __pread_chk __pread64_chk __read __write __pread64 __pwrite64 \
          send recv sendto recvfrom __recv_chk __recvfrom_chk __send getdents64 readlink",
        size(2),
    ),
    (b"getrandom getentropy ftruncate ftruncate64 truncate truncate64 getcwd gethostname", size(1)),
    (b"readv writev preadv pwritev preadv64 pwritev64 preadv2 pwritev2", int_items(2)),
    (b"sendfile sendfile64 fallocate fallocate64 memccpy", size(3)),
    (b"splice copy_file_range", size(4)),
    (b"tee", size(2)),
    (b"posix_fadvise posix_fadvise64 readahead sync_file_range posix_fallocate posix_fallocate64", size(2)),
    (b"sendmmsg recvmmsg", int_items(2)),
    (b"fread fwrite fread_unlocked fwrite_unlocked", pieces(1, 2)),
    (b"__fread_chk __fread_unlocked_chk", pieces(2, 3)),
    (b"fgets fgets_unlocked", int_size(1)),
    (b"__fgets_chk", int_size(2)),
    (b"setvbuf __rust_realloc", size(3)),
    (b"snprintf vsnprintf", size(1)),
    // Waiting.
    (b"poll __poll __poll_chk g_poll", timeout(2, ARGUMENT_MS)),
    (b"epoll_wait epoll_pwait", timeout(3, ARGUMENT_MS)),
    (b"usleep", timeout(0, ARGUMENT_US)),
    (b"g_usleep", Argument { first: 0, second: None, is_int: false, meaning: ARGUMENT_US }),
    (b"sleep", timeout(0, ARGUMENT_S)),
    (b"uv_sleep SDL_Delay", timeout(0, ARGUMENT_MS)),
    (b"curl_multi_wait curl_multi_poll", timeout(3, ARGUMENT_MS)),
    // Sorting, searching: items, not bytes.
    (b"qsort qsort_r", items(1)),
    (b"bsearch lfind lsearch", items(2)),
    // Checksums, digests, ciphers.
    (b"crc32 adler32", int_size(2)),
    (b"crc32_z adler32_z XXH3_64bits_update XXH64_update XXH32_update", size(2)),
    (b"lzma_crc32 lzma_crc64 XXH64 XXH32 XXH3_64bits XXH3_128bits SHA1 SHA256 SHA512 MD5", size(1)),
    (b"EVP_DigestUpdate EVP_DigestSignUpdate EVP_DigestVerifyUpdate HMAC_Update SHA1_Update SHA256_Update SHA512_Update MD5_Update", size(2)),
    (b"EVP_EncryptUpdate EVP_DecryptUpdate EVP_CipherUpdate", int_size(4)),
    (b"gcry_md_write", size(2)),
    (b"nettle_sha256_update nettle_sha1_update nettle_md5_update", size(1)),
    (b"SSL_read SSL_write SSL_peek BIO_read BIO_write", int_size(2)),
    (b"RAND_bytes", int_size(1)),
    (b"SSL_read_ex SSL_write_ex gnutls_record_recv gnutls_record_send", size(2)),
    // Compression.
    (b"compress compress2 uncompress", size(3)),
    (b"deflateInit_ deflateInit2_ BZ2_bzCompressInit", level(1)),
    (b"gzread gzwrite BZ2_bzread BZ2_bzwrite", int_size(2)),
    (b"gzfread gzfwrite", pieces(1, 2)),
    (b"ZSTD_compress ZSTD_decompress", size(3)),
    (b"ZSTD_compressCCtx ZSTD_decompressDCtx ZSTD_compress2", size(4)),
    (b"LZ4_compress_default LZ4_decompress_safe LZ4_compress_fast LZ4_compress_HC", int_size(2)),
    (b"snappy_compress snappy_uncompress", size(1)),
    (b"BrotliEncoderCompress", size(3)),
    // Databases: the length of the SQL text, where the caller passes it.
    (b"sqlite3_prepare sqlite3_prepare_v2 sqlite3_prepare_v3", int_size(2)),
    (b"sqlite3_bind_text sqlite3_bind_blob", int_size(3)),
    (b"mysql_real_query mysql_send_query", size(2)),
    (b"PQsendQueryPrepared PQexecPrepared PQexecParams", int_items(2)),
    (b"PQputCopyData", int_size(2)),
    // Linear algebra, transforms: the dimension of a matrix, or the length.
    (b"cblas_dgemm cblas_sgemm cblas_zgemm cblas_cgemm", int_items(3)),
    (b"cblas_ddot cblas_sdot cblas_daxpy cblas_saxpy cblas_dnrm2 cblas_dscal", int_items(0)),
    (b"fftw_plan_dft_1d fftwf_plan_dft_1d fftw_plan_r2r_1d", int_items(0)),
    // Python.
    (b"PyList_New PyTuple_New", items(0)),
    (b"PyBytes_FromStringAndSize PyUnicode_FromStringAndSize PyUnicode_DecodeUTF8 PyByteArray_FromStringAndSize", size(1)),
    // GLib and the C++ library.
    (b"g_array_append_vals g_byte_array_append", int_items(2)),
    (b"g_string_append_len", size(2)),
    (b"g_strndup strndup __strndup", size(1)),
    (b"_ZNSo5writeEPKcl _ZNSi4readEPcl", size(2)),
    (b"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm", size(2)),
    (b"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7reserveEm", size(1)),
    (b"_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l", size(2)),
    // Files and hosts by name. What is found beside a directory's descriptor is named by its path as given.
    (
        b"open open64 __open __open64 __open_2 __open64_2 creat creat64 fopen fopen64 freopen freopen64 \
          stat stat64 lstat lstat64 __stat __lstat statfs statfs64 statvfs statvfs64 access eaccess euidaccess \
          unlink rmdir mkdir remove rename link symlink chmod chown lchown chdir utime utimes mkfifo \
          opendir realpath __realpath_chk canonicalize_file_name getxattr lgetxattr setxattr listxattr \
          shm_open dlopen gzopen gzopen64 sqlite3_open sqlite3_open_v2",
        path(0),
    ),
    (
        b"openat openat64 __openat_2 __openat64_2 fstatat fstatat64 statx faccessat unlinkat mkdirat \
          readlinkat renameat renameat2 fchmodat fchownat utimensat dlmopen inotify_add_watch \
          __xstat __xstat64 __lxstat __lxstat64",
        path(1),
    ),
    (b"__fxstatat __fxstatat64", path(2)),
    (
        b"getaddrinfo gethostbyname gethostbyname2 gethostbyname_r gethostbyname2_r res_query res_search \
          __res_query __res_search",
        host(0),
    ),
    (b"__res_nquery __res_nsearch res_nquery res_nsearch", host(1)),
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_known_by_the_functions_names() {
        assert_eq!(argument_of(b"malloc"), Some(size(0)));
        assert_eq!(argument_of(b"fread"), Some(pieces(1, 2)));
        assert_eq!(argument_of(b"poll"), Some(timeout(2, ARGUMENT_MS)));
        assert_eq!(argument_of(b"openat"), Some(path(1)));
        assert!(argument_of(b"getaddrinfo").is_some_and(|argument| argument.is_text()));
        assert!(argument_of(b"read").is_some_and(|argument| !argument.is_text()));
        assert_eq!(argument_of(b"strlen"), None);
        assert_eq!(argument_of(b""), None);
    }

    #[test]
    fn registers_are_where_the_slow_path_saves_them() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(|number| size(number).place()), PLACES);
        assert_eq!(size(0).second_place(), 0);
        assert_eq!(pieces(1, 2).second_place(), -16);
    }
}
