//! What a page is made of.

use crate::bars::Bars;
use crate::over_time::OverTime;
use crate::slowdown::Slowdown;
use crate::table::Table;
use crate::tail::Tail;

/// A page. What is empty is left out.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What was compared, in a few words.
    pub title: String,
    /// What was found, a paragraph each.
    pub summary: Vec<String>,
    /// Names of the rows (protocols, settings) in the order in which they get
    /// their colours; a name has the same colour in every picture. Names that
    /// are missing here follow in the order of the pictures.
    pub rows: Vec<String>,
    /// What a careful reader would object to, a paragraph each.
    pub caveats: Vec<String>,
    /// Pictures and tables.
    pub sections: Vec<Section>,
    /// What the time of a message is divided by to get its slowdown, as the end
    /// of the sentence "the time that a message took, divided by ...".
    pub slowdown_divisor: String,
    /// The set-up: names and values.
    pub setup: Vec<(String, String)>,
    /// Command line that repeats the run.
    pub command: String,
    /// Name and version of the program that measured.
    pub version: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// Paragraphs before the picture.
    pub text: Vec<String>,
    /// What it shows.
    pub picture: Picture,
}

impl Section {
    /// With one paragraph.
    pub fn new(heading: &str, text: &str, picture: Picture) -> Self {
        Self {
            heading: heading.into(),
            text: vec![text.into()],
            picture,
        }
    }
}

/// What a section shows.
#[derive(Clone, Debug)]
pub enum Picture {
    /// Slowdown by message size.
    Slowdown(Slowdown),
    /// Which share is longer, larger or later than a value.
    Tail(Tail),
    /// Something over time.
    OverTime(OverTime),
    /// Bars in groups.
    Bars(Bars),
    /// Measures by row, with ratios.
    Table(Table),
}

impl Picture {
    /// Names of its rows, in order.
    fn rows(&self) -> Vec<&str> {
        match self {
            Self::Slowdown(chart) => chart.rows.iter().map(|row| &*row.name).collect(),
            Self::Tail(chart) => chart.rows.iter().map(|row| &*row.name).collect(),
            Self::OverTime(chart) => chart.rows.iter().map(|row| &*row.name).collect(),
            Self::Bars(chart) => chart.rows.iter().map(|row| &**row).collect(),
            Self::Table(table) => table.rows.iter().map(|row| &**row).collect(),
        }
    }
}

impl Page {
    /// The page as HTML that is well-formed XML too.
    pub fn html(&self) -> String {
        crate::html::render(self)
    }

    /// Names of all rows in the order of their styles, each once.
    pub(crate) fn row_names(&self) -> Vec<&str> {
        let pictures = self.sections.iter();
        let mut names: Vec<&str> = Vec::new();
        for name in self
            .rows
            .iter()
            .map(|row| &**row)
            .chain(pictures.flat_map(|section| section.picture.rows()))
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
