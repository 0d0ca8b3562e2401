//! Reads `size_bytes,cumulative_fraction` lines and says where they are wrong.

use super::Point;

/// The last fraction may differ from 1 by this much (rounding in the file).
const END_TOLERANCE: f64 = 1e-4;

/// Why a text is no distribution. Lines and columns count from 1; a column is
/// a position in the line.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum CsvError {
    /// A field is missing, superfluous or unreadable.
    #[error("line {line}, column {column}: {problem}")]
    Field {
        /// Line, from 1.
        line: usize,
        /// Character in the line, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// No line with numbers.
    #[error("no line with a size and a fraction")]
    Empty,
    /// The fractions end below 1.
    #[error("line {line}: the last cumulative fraction is {found}, not 1: is the file cut off?")]
    End {
        /// Last line, from 1.
        line: usize,
        /// Its fraction.
        found: f64,
    },
}

/// Parses a whole file. Empty lines and lines that start with `#` are skipped;
/// the first other line may be the header.
pub(super) fn parse(text: &str) -> Result<Vec<Point>, CsvError> {
    let mut points: Vec<Point> = Vec::new();
    let mut last_line = 0;
    let mut header_possible = true;
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        let trimmed = content.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if header_possible {
            header_possible = false;
            if trimmed.starts_with(|first: char| first.is_ascii_alphabetic()) {
                check_header(trimmed, line)?;
                continue;
            }
        }
        let point = parse_line(content, line)?;
        last_line = line;
        match points.last() {
            Some(last) if point.size_bytes <= last.size_bytes => {
                return Err(field(
                    line,
                    1,
                    format!(
                        "size {} does not rise above {}",
                        point.size_bytes, last.size_bytes
                    ),
                ));
            }
            Some(last) if point.cumulative < last.cumulative => {
                return Err(field(
                    line,
                    second_column(content),
                    format!(
                        "cumulative fraction {} falls below {}",
                        point.cumulative, last.cumulative
                    ),
                ));
            }
            // A size nobody has: no point at all.
            Some(last) if point.cumulative <= last.cumulative => {}
            None if point.cumulative <= 0.0 => {}
            _ => points.push(point),
        }
    }
    let Some(last) = points.last_mut() else {
        return Err(CsvError::Empty);
    };
    if (last.cumulative - 1.0).abs() > END_TOLERANCE {
        return Err(CsvError::End {
            line: last_line,
            found: last.cumulative,
        });
    }
    last.cumulative = 1.0;
    Ok(points)
}

fn field(line: usize, column: usize, problem: String) -> CsvError {
    CsvError::Field {
        line,
        column,
        problem,
    }
}

/// Where the text behind the first comma starts.
fn second_column(content: &str) -> usize {
    content
        .chars()
        .position(|character| character == ',')
        .map_or(1, |comma| comma + 2)
}

fn check_header(header: &str, line: usize) -> Result<(), CsvError> {
    let first = header.split(',').next().unwrap_or_default().trim();
    if first.contains("packet") {
        return Err(field(
            line,
            1,
            format!(
                "sizes are in packets (`{first}`): multiply them by the payload of a packet and name the column size_bytes"
            ),
        ));
    }
    if header.split(',').count() != 2 {
        return Err(field(
            line,
            1,
            format!("the header `{header}` should be `size_bytes,cumulative_fraction`"),
        ));
    }
    Ok(())
}

/// Reads one `size,fraction` line; `line` is its number, for errors.
pub(super) fn parse_line(content: &str, line: usize) -> Result<Point, CsvError> {
    let Some((size, rest)) = content.split_once(',') else {
        return Err(field(
            line,
            content.chars().count() + 1,
            format!(
                "a comma and a cumulative fraction should follow `{}`",
                content.trim()
            ),
        ));
    };
    if let Some(comma) = rest.find(',') {
        let column = second_column(content) + rest[..comma].chars().count();
        return Err(field(
            line,
            column,
            "a third field: only size and fraction belong here".into(),
        ));
    }
    let size_bytes = match size.trim().parse::<u32>() {
        Ok(bytes) if bytes > 0 => bytes,
        _ => {
            return Err(field(
                line,
                1,
                format!(
                    "`{}` is not a size in bytes (a whole number from 1 to {})",
                    size.trim(),
                    u32::MAX
                ),
            ));
        }
    };
    let cumulative = match rest.trim().parse::<f64>() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => fraction,
        _ => {
            return Err(field(
                line,
                second_column(content),
                format!(
                    "`{}` is not a cumulative fraction (a number from 0 to 1)",
                    rest.trim()
                ),
            ));
        }
    };
    Ok(Point {
        size_bytes,
        cumulative,
    })
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn parse__header_comments_and_rounding() {
        let points =
            parse("# mine\n\nsize_bytes,cumulative_fraction\n10, 0.5\n 20,0.99999\n").unwrap();
        assert_eq!(points.len(), 2);
        assert!((points[1].cumulative - 1.0).abs() < f64::EPSILON);
        assert_eq!(points[1].size_bytes, 20);
    }

    #[test]
    fn parse__sizes_nobody_has_are_dropped() {
        let points = parse("10,0\n20,0.5\n30,0.5\n40,1").unwrap();
        let sizes: Vec<u32> = points.iter().map(|point| point.size_bytes).collect();
        assert_eq!(sizes, [20, 40]);
    }

    #[test]
    fn parse__says_where() {
        assert_eq!(
            problem("size_bytes,cumulative_fraction\n10,0.5\nten,1\n"),
            "line 3, column 1: `ten` is not a size in bytes (a whole number from 1 to 4294967295)"
        );
        assert!(problem("10,0.5\n20,x").starts_with("line 2, column 4: `x` is not"));
        assert!(problem("10,0.5\n20,1.5").starts_with("line 2, column 4:"));
        assert!(problem("10,0.5\n20").starts_with("line 2, column 3: a comma"));
        assert!(problem("10,0.5,7").starts_with("line 1, column 7: a third"));
        assert!(problem("10,0.5\n10,1").contains("does not rise"));
        assert!(problem("10,0.5\n20,0.4\n").starts_with("line 2, column 4: cumulative"));
        assert!(problem("10,0.5\n20,0.9\n").starts_with("line 2: the last cumulative"));
        assert_eq!(problem("# nothing\n"), "no line with a size and a fraction");
        assert!(problem("10,NaN").starts_with("line 1, column 4:"));
    }

    #[test]
    fn parse__packets_are_refused() {
        assert!(problem("size_packets,cumulative_fraction\n1,1\n").contains("in packets"));
    }
}
