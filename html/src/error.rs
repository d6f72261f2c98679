//! What can go wrong.

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A chart could not be drawn.
    #[error("drawing a chart")]
    Chart(#[from] chase_viz::Error),
    /// A flame graph could not be drawn.
    #[error("drawing a flame graph")]
    Flame(#[source] std::io::Error),
    /// A table could not be written into the page.
    #[error("writing a table as JSON")]
    Json(#[from] serde_json::Error),
}
