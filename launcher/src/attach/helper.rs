//! The thread that does the work in the process: what it runs, and what it is told.

use std::arch::global_asm;
use std::mem::offset_of;

use chase_format::attachment::{AUXILIARY, DONE, Order as ToLibrary, Shown};

// What `Order` below says. Position independent: it is copied.
global_asm!(
    ".globl chase_helper_begin",
    ".hidden chase_helper_begin",
    ".globl chase_helper_end",
    ".hidden chase_helper_end",
    "chase_helper_begin:",
    "    pushq %rbx",
    "    movq %rdi, %rbx",
    "    movq 24(%rbx), %rax", // where the attachment is, if it is there
    "    testq %rax, %rax",
    "    jnz 1f",
    "    leaq 64(%rbx), %rdi",
    "    movl $2, %esi", // RTLD_NOW
    "    callq *(%rbx)",
    "    testq %rax, %rax",
    "    jz 2f",
    "    movq (%rax), %rax", // a handle begins with what is added to addresses in the file
    "    addq 16(%rbx), %rax",
    "    movq %rax, 24(%rbx)",
    "1:",
    "    addq 32(%rbx), %rax",
    "    leaq 128(%rbx), %rdi",
    "    callq *(%rax)", // attach, or detach
    "    movl $1, 40(%rbx)",
    "    xorl %eax, %eax",
    "    popq %rbx",
    "    retq",
    "2:",
    // What the C library says of it goes with the thread.
    "    callq *8(%rbx)",
    "    testq %rax, %rax",
    "    jz 4f",
    "    xorl %ecx, %ecx",
    "3:",
    "    movb (%rax, %rcx), %dl",
    "    testb %dl, %dl",
    "    jz 4f",
    "    movb %dl, {reason}(%rbx, %rcx)",
    "    incl %ecx",
    "    cmpl ${reason_len}, %ecx",
    "    jb 3b",
    "4:",
    "    movl $2, 40(%rbx)",
    "    xorl %eax, %eax",
    "    popq %rbx",
    "    retq",
    "chase_helper_end:",
    reason = const REASON_AT,
    reason_len = const LEN_AT - REASON_AT,
    options(att_syntax)
);

unsafe extern "C" {
    static chase_helper_begin: u8;
    static chase_helper_end: u8;
}

/// The code of the thread; its argument is an [`Order`].
pub(super) fn code() -> &'static [u8] {
    let (begin, end) = (&raw const chase_helper_begin, &raw const chase_helper_end);
    // SAFETY: both are in the text above, in this order.
    unsafe { std::slice::from_raw_parts(begin, end.addr() - begin.addr()) }
}

/// Where `attach` and `detach` are in the attachment.
pub(super) const ATTACH: u64 = offset_of!(Shown, attach) as u64;
pub(super) const DETACH: u64 = offset_of!(Shown, detach) as u64;

/// Places in an order.
const PATH_AT: usize = 64;
const TO_LIBRARY_AT: usize = 128;
/// And in the part of it that the library reads.
const REASON_AT: usize = TO_LIBRARY_AT + offset_of!(ToLibrary, reason);
const LEN_AT: usize = TO_LIBRARY_AT + offset_of!(ToLibrary, len);
const AUXILIARY_AT: usize = TO_LIBRARY_AT + offset_of!(ToLibrary, auxiliary);
const DATA_AT: usize = TO_LIBRARY_AT + size_of::<ToLibrary>();

/// Where the library is told that threads go on before it is done.
pub(super) const CANCEL_AT: u64 = (TO_LIBRARY_AT + offset_of!(ToLibrary, errno)) as u64;

/// What the thread is told.
pub(super) struct Order<'a> {
    pub(super) dlopen: u64,
    pub(super) dlerror: u64,
    /// From where the library is loaded to its attachment.
    pub(super) attachment_svma: u64,
    /// Where the attachment is; 0: the library is to be loaded.
    pub(super) attachment: u64,
    /// [`ATTACH`] or [`DETACH`].
    pub(super) what: u64,
    /// What is loaded.
    pub(super) path: &'a str,
    /// The process's auxiliary vector.
    pub(super) auxiliary: &'a [u8],
    /// How many the library is told of, and what.
    pub(super) count: u64,
    pub(super) data: &'a [u8],
}

impl Order<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; DATA_AT];
        let words = [self.dlopen, self.dlerror, self.attachment_svma, self.attachment, self.what];
        for (i, word) in words.iter().enumerate() {
            bytes[i * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes[PATH_AT..][..self.path.len()].copy_from_slice(self.path.as_bytes());
        bytes[LEN_AT..][..8].copy_from_slice(&self.count.to_le_bytes());
        let auxiliary = &self.auxiliary[..self.auxiliary.len().min(8 * AUXILIARY)];
        bytes[AUXILIARY_AT..][..auxiliary.len()].copy_from_slice(auxiliary);
        bytes.extend_from_slice(self.data);
        bytes
    }
}

/// What came of it.
pub(super) enum Answer {
    /// Nothing yet.
    None,
    /// Done, with what the library has to say. The attachment is there.
    Done(u64, String),
    /// The library was not loaded, and why.
    NotLoaded(String),
    /// The library refused. The attachment is there.
    Refused(u64, String, i32),
}

/// Reads the answer from an order's beginning.
pub(super) fn answer(bytes: &[u8]) -> Answer {
    let word = |at: usize| {
        let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_le_bytes)
    };
    let text = bytes.get(REASON_AT..LEN_AT).unwrap_or(&[]);
    let text = text.split(|&byte| byte == 0).next().unwrap_or(&[]);
    let text = String::from_utf8_lossy(text).into_owned();
    match (word(40) as u32, word(TO_LIBRARY_AT)) {
        (0, _) => Answer::None,
        (1, DONE) => Answer::Done(word(24), text),
        (1, _) => {
            let errno = word(TO_LIBRARY_AT + offset_of!(ToLibrary, errno));
            Answer::Refused(word(24), text, errno as i32)
        }
        _ => Answer::NotLoaded(text),
    }
}

/// Length of an order without its data.
pub(super) const ORDER_LEN: usize = DATA_AT;
