//! How much room text takes, so that labels neither overlap nor leave the
//! picture.
//!
//! The font is the reader's, so widths are estimates from above: those of
//! DejaVu Sans, the widest of the usual ones.

/// Width of a text in pixels at this size of font.
pub(crate) fn width(text: &str, font_px: f64) -> f64 {
    text.chars().map(|c| em(c) * font_px).sum()
}

fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '\u{a0}' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        'A'..='Z' => 0.72,
        c if c.is_ascii() => 0.64,
        '\u{80}'..='\u{24f}' => 0.64,
        _ => 1.0,
    }
}

/// The text, or as much of its beginning as fits and an ellipsis.
pub(crate) fn fit(text: &str, font_px: f64, most_px: f64) -> String {
    if width(text, font_px) <= most_px {
        return text.to_owned();
    }
    let mut used = em('…') * font_px;
    let mut short = String::new();
    for c in text.chars() {
        used += em(c) * font_px;
        if used > most_px {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

/// Lines no wider than this, broken between words; a word that is too long is
/// cut.
pub(crate) fn wrap(text: &str, font_px: f64, most_px: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word = fit(word, font_px, most_px);
        match lines.last_mut() {
            Some(line) if width(line, font_px) + width(&word, font_px) + font_px <= most_px => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn fit__cuts_what_is_too_long() {
        assert_eq!(fit("short", 12.0, 100.0), "short");
        let cut = fit(&"long ".repeat(50), 12.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0, "{cut}");
        assert_eq!(fit("any", 12.0, 0.0), "…");
    }

    #[test]
    fn wrap__keeps_every_word() {
        let lines = wrap("not enough samples for this", 12.0, 90.0);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 90.0));
        assert_eq!(lines.join(" "), "not enough samples for this");
    }
}
