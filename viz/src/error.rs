//! What can be wrong with a chart's input.

/// Why a chart was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that no chart can show.
    #[error(
        "the value of {label:?} is {value}; a chart needs a finite number that is not negative"
    )]
    Value {
        /// Whose value it is.
        label: String,
        /// The value.
        value: f64,
    },
    /// A bar whose group is not among the groups.
    #[error("{label:?} belongs to group number {group}, but there are {groups} groups")]
    Group {
        /// The bar.
        label: String,
        /// Its group.
        group: usize,
        /// How many groups were given.
        groups: usize,
    },
    /// A picture that is empty or too large to be made.
    #[error("a PNG {width} pixels wide was asked for; between 1 and {max} are possible")]
    Size {
        /// Width asked for, pixels.
        width: u32,
        /// Largest width possible, pixels.
        max: u32,
    },
    /// The embedded font could not be read.
    #[error("reading the embedded font")]
    Font(#[from] ttf_parser::FaceParsingError),
    /// The drawing backend failed.
    #[error("drawing the chart as SVG: {0}")]
    Draw(String),
    /// The SVG could not be read back for rendering.
    #[error("reading the chart's SVG to render it as PNG")]
    Svg(#[from] resvg::usvg::Error),
    /// The PNG could not be encoded.
    #[error("encoding the chart as PNG: {0}")]
    Png(String),
}
