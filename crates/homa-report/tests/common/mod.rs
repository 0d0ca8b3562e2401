//! What the tests of pages share: the sample, and reading a page back.

use roxmltree::{Document, Node, ParsingOptions};

#[allow(
    dead_code,
    reason = "an example has a main, of which tests have no use"
)]
#[path = "../../examples/sample.rs"]
pub(crate) mod sample;

/// Reads a page as strict XML and hands it on.
pub(crate) fn read<T>(html: &str, look: impl FnOnce(&Document<'_>) -> T) -> T {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    match Document::parse_with_options(html, options) {
        Ok(document) => look(&document),
        Err(error) => panic!("not well-formed: {error}"),
    }
}

/// All elements of this name below a node.
pub(crate) fn all<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.descendants()
        .filter(move |node| node.tag_name().name() == name)
}

/// All text below a node, in order.
pub(crate) fn text(node: Node<'_, '_>) -> String {
    node.descendants()
        .filter_map(|node| node.text().filter(|_| node.is_text()))
        .collect()
}

/// The group of a row in a picture, or in one of its panels.
pub(crate) fn rows<'a, 'input>(
    picture: Node<'a, 'input>,
    name: &'static str,
) -> Vec<Node<'a, 'input>> {
    picture
        .descendants()
        .filter(|node| node.attribute("data-row") == Some(name))
        .collect()
}

/// The numbers of an attribute, letters between them aside.
pub(crate) fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| c.is_ascii_alphabetic() || c == ' ')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap())
        .collect()
}

/// A text with the room that it takes: left, right, baseline.
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) y: f64,
}

/// All texts of a picture, about as wide as an average font draws them.
pub(crate) fn labels(picture: Node<'_, '_>) -> Vec<Label> {
    all(picture, "text")
        .map(|node| {
            let attribute = |name| node.attribute(name).unwrap_or_default();
            let number = |name| attribute(name).parse::<f64>().unwrap();
            let text = text(node);
            let width = text.chars().count() as f64 * 13.0 * 0.5;
            let left = match attribute("text-anchor") {
                "start" => number("x"),
                "middle" => number("x") - width / 2.0,
                "end" => number("x") - width,
                other => panic!("text-anchor {other}"),
            };
            Label {
                text,
                left,
                right: left + width,
                y: number("y"),
            }
        })
        .collect()
}
