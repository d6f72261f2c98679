//! Turns bytes into data or an error.
