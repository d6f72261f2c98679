//! What can go wrong.

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The JSON could not be made.
    #[error("writing the profile as JSON")]
    Json(#[from] serde_json::Error),
    /// The compressed bytes could not be made.
    #[error("compressing the profile")]
    Compress(#[from] std::io::Error),
}
