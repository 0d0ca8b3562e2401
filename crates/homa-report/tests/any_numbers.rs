//! Whatever numbers, names and lengths come: a page is made, is well-formed,
//! and everything on it is inside its picture.

#![forbid(unsafe_code)]
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that finds nothing to unwrap has failed"
)]

#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "shared by tests, of which each uses a part, and made to fail them"
)]
mod common;

use common::{all, labels, numbers, read};
use homa_report::{
    Bar, BarGroup, Bars, Better, Limit, Measure, Measured, OverTime, Page, Picture, PublishedClass,
    PublishedCurve, Section, SizeClass, Slowdown, SlowdownRow, Table, Tail, TailPoint, TailRow,
    TimeRow, Unit,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Any at all, usual ones, and the odd ones more often than chance has them.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => proptest::num::f64::ANY,
        3 => 0.0..1000.0,
        2 => 0.0..1.0,
        1 => prop_oneof![
            Just(0.0), Just(-0.0), Just(1.0), Just(f64::NAN), Just(f64::INFINITY),
            Just(f64::NEG_INFINITY), Just(f64::MAX), Just(f64::MIN), Just(f64::MIN_POSITIVE),
        ],
    ]
}

fn measured() -> impl Strategy<Value = Measured> {
    (option::weighted(0.8, number()), any::<u64>())
        .prop_map(|(value, samples)| Measured { value, samples })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z ]{0,12}", "\\PC{0,80}", any::<String>()]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![
        Just(Unit::Microseconds),
        Just(Unit::Bytes),
        Just(Unit::GbitPerS),
        Just(Unit::Share),
        Just(Unit::Plain),
    ]
}

fn class() -> impl Strategy<Value = SizeClass> {
    (any::<u64>(), number()).prop_map(|(up_to_bytes, cumulative)| SizeClass {
        up_to_bytes,
        cumulative,
    })
}

fn slowdown() -> impl Strategy<Value = Picture> {
    let row = (name(), vec(measured(), 0..6), vec(measured(), 0..6))
        .prop_map(|(name, p50, p99)| SlowdownRow { name, p50, p99 });
    let published = (class(), number(), number()).prop_map(|(class, p50, p99)| PublishedClass {
        class,
        p50,
        p99,
    });
    let curve =
        (name(), name(), vec(published, 0..5)).prop_map(|(name, source, classes)| PublishedCurve {
            name,
            source,
            classes,
        });
    (vec(class(), 0..5), vec(row, 0..4), vec(curve, 0..3)).prop_map(|(classes, rows, published)| {
        Picture::Slowdown(Slowdown {
            classes,
            rows,
            published,
        })
    })
}

fn tail() -> impl Strategy<Value = Picture> {
    let point = (number(), number()).prop_map(|(value, above)| TailPoint { value, above });
    let given =
        (name(), any::<u64>(), vec(point, 0..30)).prop_map(|(name, samples, points)| TailRow {
            name,
            samples,
            points,
        });
    let made = (name(), vec(number(), 0..60)).prop_map(|(name, v)| TailRow::of_values(&name, v));
    let row = prop_oneof![given, made];
    (name(), name(), unit(), vec(row, 0..4)).prop_map(|(of, share_of, unit, rows)| {
        Picture::Tail(Tail {
            of,
            share_of,
            unit,
            rows,
        })
    })
}

fn over_time() -> impl Strategy<Value = Picture> {
    let row = (name(), vec((number(), number()), 0..40))
        .prop_map(|(name, points)| TimeRow { name, points });
    let limit = option::of((name(), number()).prop_map(|(name, value)| Limit { name, value }));
    (name(), unit(), vec(row, 0..4), limit).prop_map(|(of, unit, rows, limit)| {
        Picture::OverTime(OverTime {
            of,
            unit,
            rows,
            limit,
        })
    })
}

fn bars() -> impl Strategy<Value = Picture> {
    let bar = (measured(), option::of(number())).prop_map(|(value, until)| Bar { value, until });
    let group = (name(), vec(bar, 0..5)).prop_map(|(name, bars)| BarGroup { name, bars });
    (name(), name(), unit(), vec(name(), 0..4), vec(group, 0..4)).prop_map(
        |(of, until, unit, rows, groups)| {
            Picture::Bars(Bars {
                of,
                until,
                unit,
                rows,
                groups,
            })
        },
    )
}

fn table() -> impl Strategy<Value = Picture> {
    let better = prop_oneof![
        Just(Better::Lower),
        Just(Better::Higher),
        Just(Better::Neither)
    ];
    let measure = (name(), unit(), better, vec(measured(), 0..4), any::<bool>()).prop_map(
        |(name, unit, better, values, headline)| Measure {
            name,
            unit,
            better,
            values,
            headline,
        },
    );
    (
        vec(name(), 0..4),
        option::of(0_usize..5),
        vec(measure, 0..4),
    )
        .prop_map(|(rows, reference, measures)| {
            Picture::Table(Table {
                rows,
                reference,
                measures,
            })
        })
}

fn page(picture: Picture) -> Page {
    Page {
        sections: vec![Section {
            heading: String::new(),
            text: vec![],
            picture,
        }],
        ..Page::default()
    }
}

/// Coordinates are numbers within the picture, and labels begin in it.
fn check(page: &Page) {
    read(&page.html(), |page| {
        for svg in all(page.root_element(), "svg") {
            let size = numbers(svg.attribute("viewBox").unwrap());
            let (width, height) = (size[2], size[3]);
            for node in svg.descendants() {
                if node
                    .ancestors()
                    .any(|node| node.tag_name().name() == "pattern")
                {
                    continue;
                }
                for (names, most) in [
                    (["x", "x1", "x2", "cx", "width"], width),
                    (["y", "y1", "y2", "cy", "height"], height),
                ] {
                    let values = names.iter().filter_map(|name| node.attribute(*name));
                    for value in values {
                        let value: f64 = value.parse().unwrap();
                        assert!((0.0..=most).contains(&value), "{value} of {most}");
                    }
                }
                let path = numbers(node.attribute("d").unwrap_or_default());
                for place in path.chunks(2) {
                    assert!((0.0..=width).contains(&place[0]), "{place:?}");
                    assert!((0.0..=height).contains(&place[1]), "{place:?}");
                }
            }
            for label in labels(svg) {
                let said: String = label.text.chars().take(20).collect();
                assert!(label.left >= -40.0 && label.left <= width, "{said}");
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn slowdown__any_numbers(picture in slowdown()) {
        check(&page(picture));
    }

    #[test]
    fn tail__any_numbers(picture in tail()) {
        check(&page(picture));
    }

    #[test]
    fn over_time__any_numbers(picture in over_time()) {
        check(&page(picture));
    }

    #[test]
    fn bars__any_numbers(picture in bars()) {
        check(&page(picture));
    }

    #[test]
    fn table__any_numbers(picture in table()) {
        check(&page(picture));
    }
}
