//! Graphs: boxes, circles, and arrows between them.

use layout::backends::svg::SVGWriter;
use layout::gv::{DotParser, GraphBuilder};

use crate::Error;

/// What the library writes, and what other pictures are written in: it is a little wider, for which boxes have room.
const SERIFS: &str = "font-family: Times, serif";
const FONT: &str = "font-family: 'DejaVu Sans', Verdana, Arial, sans-serif";

/// `dot`, a graph in the language of Graphviz, as an SVG document.
///
/// # Errors
///
/// If it is no graph, or has no boxes.
pub fn graph(dot: &str) -> Result<String, Error> {
    let graph = DotParser::new(dot).process().map_err(Error::Draw)?;
    let mut builder = GraphBuilder::new();
    builder.visit_graph(&graph);
    let mut drawn = builder.get();
    if drawn.num_nodes() == 0 {
        return Err(Error::Draw("there is nothing in the graph".to_owned()));
    }
    let mut svg = SVGWriter::new();
    drawn.do_it(false, false, false, &mut svg);
    Ok(svg.finalize().replace(SERIFS, FONT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_its_names_in_it() {
        let svg = graph(
            "digraph g { a [shape=box, label=\"cat <1>\"]; b; a -> b [label=\"3 kB\"]; b -> a; }",
        );
        let svg = svg.expect("an SVG");
        let document = roxmltree::Document::parse(&svg).expect("XML");
        let text: String = document.descendants().filter_map(|node| node.text()).collect();
        assert!(text.contains("cat <1>") && text.contains("3 kB"), "{text}");
        assert!(svg.contains("sans-serif") && !svg.contains("Times"));
    }

    #[test]
    fn what_is_no_graph_is_an_error() {
        assert!(graph("digraph {").is_err());
        assert!(graph("digraph waits {}").is_err());
    }
}
