//! The words of one line, taken one after another or by name.

/// What is left of a line. A line is understood when nothing is.
pub(crate) struct Words {
    words: Vec<String>,
}

impl Words {
    pub(crate) fn new(line: &str) -> Self {
        Self {
            words: line.split_whitespace().map(String::from).collect(),
        }
    }

    /// The next word.
    pub(crate) fn next(&mut self) -> Result<String, String> {
        if self.words.is_empty() {
            return Err("the line is too short".into());
        }
        Ok(self.words.remove(0))
    }

    /// Takes the next word if it is this one.
    pub(crate) fn flag(&mut self, word: &str) -> bool {
        let found = self.words.first().is_some_and(|w| w == word);
        if found {
            self.words.remove(0);
        }
        found
    }

    /// Takes this word wherever it is.
    pub(crate) fn anywhere(&mut self, word: &str) -> bool {
        let at = self.words.iter().position(|w| w == word);
        at.map(|at| self.words.remove(at)).is_some()
    }

    /// Takes `name value` wherever it is.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.words.iter().position(|w| w == name) else {
            return Ok(None);
        };
        if at + 1 >= self.words.len() {
            return Err(format!("{name} needs a value"));
        }
        self.words.remove(at);
        Ok(Some(self.words.remove(at)))
    }

    pub(crate) fn value_number<T: TryFrom<u64>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, String> {
        self.value(name)?.map(|word| parse(&word)).transpose()
    }

    pub(crate) fn needed<T: TryFrom<u64>>(&mut self, name: &str) -> Result<T, String> {
        self.value_number(name)?
            .ok_or_else(|| format!("{name} is missing"))
    }

    pub(crate) fn number<T: TryFrom<u64>>(&mut self) -> Result<T, String> {
        parse(&self.next()?)
    }

    /// Takes a range `a..b` wherever it is.
    pub(crate) fn range(&mut self) -> Result<Option<(u32, u32)>, String> {
        let is_range = |w: &String| w.contains("..") && w.as_bytes()[0].is_ascii_digit();
        let Some(at) = self.words.iter().position(is_range) else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        let (a, b) = word.split_once("..").ok_or("a range is a..b")?;
        Ok(Some((parse(a)?, parse(b)?)))
    }

    /// Takes everything from `word` on, without it.
    pub(crate) fn after(&mut self, word: &str) -> Option<Vec<String>> {
        let at = self.words.iter().position(|w| w == word)?;
        let rest = self.words.split_off(at + 1);
        self.words.pop();
        Some(rest)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn finish(&self) -> Result<(), String> {
        match self.words.first() {
            None => Ok(()),
            Some(_) => Err(format!("not understood: {}", self.words.join(" "))),
        }
    }
}

/// A number, underscores allowed.
pub(crate) fn parse<T: TryFrom<u64>>(word: &str) -> Result<T, String> {
    let digits = word.replace('_', "");
    let value: u64 = digits
        .parse()
        .map_err(|_| format!("{word} is not a number"))?;
    T::try_from(value).map_err(|_| format!("{word} is out of range"))
}

/// A time in ns: `5ms`, `1.5ms`, `20us`, `7ns`, `1s`, `0`.
pub(crate) fn time(word: &str) -> Result<u64, String> {
    if word == "0" {
        return Ok(0);
    }
    let bad = || format!("{word} is not a time");
    let split = word
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or_else(bad)?;
    let (number, unit) = word.split_at(split);
    let unit_ns: u64 = match unit {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => return Err(bad()),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let mut ns = parse::<u64>(whole)? * unit_ns;
    let mut step = unit_ns;
    for digit in part.chars() {
        step /= 10;
        ns += u64::from(digit.to_digit(10).ok_or_else(bad)?) * step;
    }
    Ok(ns)
}
