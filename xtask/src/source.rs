//! Rust source with what a check must not look at blanked out.
//!
//! A scanner that knows comments, strings and characters, not a parser: the
//! checks ask about words. Blanks keep every line where it was.

/// One source file, in three views with the same lines.
pub(crate) struct Source {
    /// Without comments, and without what is in strings.
    code: String,
    /// Comments and code, without what is in strings.
    unquoted: String,
    /// For each line, what it is part of.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Product,
    Tests,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Text,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let kinds = kinds(text);
        let blank = |keep: &[Kind]| -> String {
            let chars = text.chars().zip(&kinds);
            chars
                .map(|(c, kind)| {
                    if c == '\n' || keep.contains(kind) {
                        c
                    } else {
                        ' '
                    }
                })
                .collect()
        };
        let code = blank(&[Kind::Code]);
        let unquoted = blank(&[Kind::Code, Kind::Comment]);
        let parts = if is_test_file(path) {
            vec![Part::Tests; text.lines().count()]
        } else {
            parts(&code)
        };
        Self {
            code,
            unquoted,
            parts,
        }
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// Lines of code from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.code)
    }

    /// Lines of code from 1 that are not tests.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines()
            .filter(|(number, _)| self.parts.get(number - 1) != Some(&Part::Tests))
    }

    /// Lines from 1 with comments but without the contents of strings.
    pub(crate) fn unquoted_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.unquoted)
    }
}

/// The identifiers in a line of code.
pub(crate) fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

/// Whether a file is nothing but tests, examples or benches.
pub(crate) fn is_test_file(path: &str) -> bool {
    let directory = |name| path.contains(&format!("/{name}/"));
    directory("tests")
        || directory("examples")
        || directory("benches")
        || path.ends_with("/tests.rs")
        || path.starts_with("tests/")
}

fn kinds(text: &str) -> Vec<Kind> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut kinds = Vec::with_capacity(chars.len());
    while kinds.len() < chars.len() {
        let start = kinds.len();
        let word_before = start > 0 && is_word(at(start - 1));
        let (kind, end) = match at(start) {
            '/' if at(start + 1) == '/' => (Kind::Comment, line_end(&chars, start)),
            '/' if at(start + 1) == '*' => (Kind::Comment, comment_end(&chars, start)),
            '"' => (Kind::Text, string_end(&chars, start)),
            'r' if !word_before || at(start - 1) == 'b' => match raw_string_end(&chars, start) {
                Some(end) => (Kind::Text, end),
                None => (Kind::Code, start + 1),
            },
            '\'' => match character_end(&chars, start) {
                Some(end) => (Kind::Text, end),
                None => (Kind::Code, start + 1),
            },
            _ => (Kind::Code, start + 1),
        };
        kinds.resize(end.clamp(start + 1, chars.len()), kind);
    }
    kinds
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn line_end(chars: &[char], start: usize) -> usize {
    let rest = chars.iter().skip(start);
    start + rest.take_while(|c| **c != '\n').count()
}

fn comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0_u32;
    let mut index = start;
    while index < chars.len() {
        match (chars.get(index), chars.get(index + 1)) {
            (Some('/'), Some('*')) => depth += 1,
            (Some('*'), Some('/')) => depth -= 1,
            _ => {
                index += 1;
                continue;
            }
        }
        index += 2;
        if depth == 0 {
            break;
        }
    }
    index
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut index = start + 1;
    while let Some(c) = chars.get(index) {
        match c {
            '\\' => index += 2,
            '"' => return index + 1,
            _ => index += 1,
        }
    }
    index
}

/// `r`, any number of `#`, a quote; ends with a quote and as many `#`.
fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let rest = chars.iter().skip(start + 1);
    let hashes = rest.take_while(|c| **c == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes = |index: &usize| {
        chars.get(*index) == Some(&'"') && (1..=hashes).all(|n| chars.get(*index + n) == Some(&'#'))
    };
    let close = (open + 1..chars.len()).find(closes)?;
    Some(close + 1 + hashes)
}

/// A character literal; a lifetime is none.
fn character_end(chars: &[char], start: usize) -> Option<usize> {
    if chars.get(start + 1) == Some(&'\\') {
        let rest = chars.iter().skip(start + 3);
        return Some(start + 4 + rest.take_while(|c| **c != '\'').count());
    }
    (chars.get(start + 2) == Some(&'\'')).then_some(start + 3)
}

/// Marks the items behind `#[cfg(test)]`.
fn parts(code: &str) -> Vec<Part> {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut parts = vec![Part::Product; code.lines().count()];
    let mut from = 0;
    while let Some(found) = code.get(from..).and_then(|rest| rest.find(ATTRIBUTE)) {
        let start = from + found;
        let end = item_end(code, start + ATTRIBUTE.len());
        let line_of = |offset: usize| {
            let before = code.get(..offset).unwrap_or(code);
            before.bytes().filter(|byte| *byte == b'\n').count()
        };
        let (first, last) = (line_of(start), line_of(end));
        for part in parts.iter_mut().take(last + 1).skip(first) {
            *part = Part::Tests;
        }
        from = end;
    }
    parts
}

/// Where the item that begins at `start` ends: at its closing brace, or at a
/// semicolon outside of braces.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_u32;
    let mut brackets = 0_u32;
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return offset + 1;
                }
            }
            b';' if depth == 0 && brackets == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new("crates/a/src/lib.rs", text).code().to_owned()
    }

    #[test]
    fn code__is_without_comments_and_strings() {
        let text = "a(\"b // c\", 'd', '\\'', br#\"e \" f\"#); // g \"h\n/* i /* j */ k */ l<'m>";
        let code = code(text);
        assert_eq!(
            identifiers(&code).collect::<Vec<_>>(),
            ["a", "b", "l", "m"],
            "{code}"
        );
    }

    #[test]
    fn unquoted_lines__keep_comments() {
        let source = Source::new("a.rs", "a // b\n\"c\"");
        let lines: Vec<_> = source.unquoted_lines().collect();
        assert_eq!(lines, [(1, "a // b"), (2, "   ")]);
    }

    #[test]
    fn product_lines__leave_out_test_items() {
        let text = "a\n#[cfg(test)]\nextern crate std;\nb\n#[cfg(test)]\n#[x(y)]\nmod tests {\n{ c }\n}\nd\n";
        let source = Source::new("crates/a/src/lib.rs", text);
        let lines: Vec<_> = source.product_lines().map(|(_, line)| line).collect();
        assert_eq!(lines, ["a", "b", "d"]);
    }

    #[test]
    fn product_lines__of_a_test_file_are_none() {
        for path in [
            "crates/a/tests/b.rs",
            "crates/a/src/b/tests.rs",
            "tests/x.rs",
        ] {
            assert_eq!(Source::new(path, "a").product_lines().count(), 0, "{path}");
        }
    }
}
