//! Lays structures into memory that the caller has mapped.
