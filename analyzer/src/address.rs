//! Addresses of code.

use serde::Serialize;

/// An address of code, and the object that was loaded there at the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct CodeAddress {
    /// Address in the process.
    pub avma: u64,
    /// The object, by number in [`Analysis::objects`](crate::Analysis::objects); `None` for code that is in no file,
    /// such as that of a JIT compiler.
    pub object: Option<u32>,
    /// Address in the object's file.
    pub svma: Option<u64>,
}
