//! Results as one HTML page: pictures, a table, and in words what was done.
//!
//! The page needs nothing besides itself: no script, no font, no request to any
//! network (its Content-Security-Policy forbids them). It reads in light and
//! dark, and prints in black and white: rows differ in dashes, markers and
//! hatches as well as in colour (the palette of Okabe and Ito).
//!
//! Invariants: all text of callers is escaped; the page is well-formed XML; any
//! number is accepted. What was not measured is said to be missing, with the
//! count of samples, and never drawn as zero; what is infinite is drawn at the
//! top edge. The same [`Page`] gives the same bytes.
//!
//! Not here: measuring, and any statistics but the curve of
//! [`TailRow::of_values`]. The structs are plain and know neither the bench nor
//! the simulator.
//!
//! ```
//! use homa_report::{Measure, Measured, Page, Section, Picture, Table, Unit};
//!
//! let page = Page {
//!     title: "Homa beside TCP".into(),
//!     sections: vec![Section {
//!         heading: "In one table".into(),
//!         text: vec![],
//!         picture: Picture::Table(Table {
//!             rows: vec!["Homa".into(), "TCP".into()],
//!             reference: Some(1),
//!             measures: vec![Measure::lower(
//!                 "p99 slowdown",
//!                 Unit::Plain,
//!                 vec![Measured::of(2.0, 9_000), Measured::of(30.0, 9_000)],
//!             )],
//!         }),
//!     }],
//!     ..Page::default()
//! };
//! assert!(page.html().contains("15×"));
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "places on paper: counts, indices and pixels become f64 and back, far below 2^53"
)]

mod axis;
mod bars;
mod frame;
mod html;
mod measured;
mod model;
mod number;
mod over_time;
mod slowdown;
mod style;
mod svg;
mod table;
mod tail;
mod text;

pub use bars::{Bar, BarGroup, Bars};
pub use measured::Measured;
pub use model::{Page, Picture, Section};
pub use number::Unit;
pub use over_time::{Limit, OverTime, TimeRow};
pub use slowdown::{PublishedClass, PublishedCurve, SizeClass, Slowdown, SlowdownRow};
pub use table::{Better, Measure, Table};
pub use tail::{Tail, TailPoint, TailRow};
