//! Whose the bytes are.

use std::fmt;
use std::ops::Deref;

/// The bytes of a recording: borrowed, or with what owns them, such as a vector or a mapped file.
pub struct Bytes<'a>(Held<'a>);

enum Held<'a> {
    Borrowed(&'a [u8]),
    Owned(Box<dyn AsRef<[u8]> + Send + Sync + 'a>),
}

impl<'a> Bytes<'a> {
    /// The bytes of `owner`, which must always give the same.
    pub fn owned(owner: impl AsRef<[u8]> + Send + Sync + 'a) -> Self {
        Self(Held::Owned(Box::new(owner)))
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Borrowed(bytes) => bytes,
            Held::Owned(owner) => (**owner).as_ref(),
        }
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Held::Borrowed(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Bytes<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self(Held::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Bytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::owned(bytes)
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
