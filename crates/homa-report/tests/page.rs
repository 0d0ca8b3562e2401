//! A page, read back as XML: what is on it, what is not, and where.

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

use std::collections::HashSet;

use common::{all, labels, numbers, read, rows, sample, text};
use homa_report::{
    Bar, BarGroup, Bars, Limit, Measure, Measured, OverTime, Page, Picture, PublishedClass,
    PublishedCurve, Section, SizeClass, Slowdown, SlowdownRow, Table, Tail, TailRow, TimeRow, Unit,
};

fn page_with(picture: Picture) -> Page {
    Page {
        sections: vec![Section {
            heading: "heading".into(),
            text: vec![],
            picture,
        }],
        ..Page::default()
    }
}

fn slowdown(p99: Vec<Measured>) -> Slowdown {
    let class = |up_to_bytes, cumulative| SizeClass {
        up_to_bytes,
        cumulative,
    };
    Slowdown {
        classes: vec![class(100, 0.25), class(1_000, 0.5), class(1_000_000, 1.0)],
        rows: vec![SlowdownRow {
            name: "Homa".into(),
            p50: vec![Measured::of(1.5, 500); 3],
            p99,
        }],
        published: vec![],
    }
}

/// The first path of a row in the first panel of the page.
fn first_line(html: &str, name: &'static str) -> Vec<f64> {
    read(html, |page| {
        let row = rows(page.root_element(), name)[0];
        let path = all(row, "path").find(|path| {
            let class = path.attribute("class").unwrap_or_default();
            class.starts_with("line")
        });
        numbers(path.unwrap().attribute("d").unwrap())
    })
}

#[test]
fn html__is_well_formed_and_the_same_each_time() {
    let html = sample::page().html();
    read(&html, |page| {
        let root = page.root_element();
        assert_eq!(all(root, "svg").count(), 6);
        assert_eq!(all(root, "h2").count(), 9);
    });
    assert_eq!(html, sample::page().html());
}

#[test]
fn html__needs_nothing_besides_itself() {
    let html = sample::page().html();
    read(&html, |page| {
        for node in page.descendants() {
            let name = node.tag_name().name();
            assert!(!["script", "link", "img", "iframe", "image"].contains(&name));
            for attribute in node.attributes() {
                assert!(!["src", "href", "style"].contains(&attribute.name()));
                assert!(!attribute.name().starts_with("on"));
            }
        }
        let style = all(page.root_element(), "style").next().unwrap();
        assert!(!text(style).contains("url(") && !text(style).contains("@import"));
    });
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn html__says_how_to_repeat_it() {
    let page = sample::page();
    read(&page.html(), |read| {
        let code = all(read.root_element(), "code").next().unwrap();
        assert_eq!(text(code), page.command);
        let said = text(read.root_element());
        for fact in [
            "homa 0.1.0",
            "1, 2, 3, 4, 5",
            "Poisson",
            &page.slowdown_divisor,
        ] {
            assert!(said.contains(fact), "{fact}");
        }
        for caveat in &page.caveats {
            assert!(said.contains(caveat));
        }
    });
}

#[test]
fn picture__is_described_for_who_does_not_see_it() {
    read(&sample::page().html(), |page| {
        let with_id = page.descendants().filter_map(|node| node.attribute("id"));
        let ids: Vec<&str> = with_id.collect();
        let unique: HashSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len());
        for svg in all(page.root_element(), "svg") {
            assert_eq!(svg.attribute("role"), Some("img"));
            let mut names = svg.attribute("aria-labelledby").unwrap().split(' ');
            assert!(names.all(|name| unique.contains(name)));
            let description = text(all(svg, "desc").next().unwrap());
            assert!(description.contains("Homa"), "{description}");
        }
    });
}

#[test]
fn picture__has_every_row_and_its_legend() {
    let expected: [(&[&str], usize); 6] = [
        (&["Homa", "TCP (cubic)", "DCTCP"], 2),
        (&["Homa", "TCP (cubic)", "DCTCP"], 1),
        (&["Homa", "TCP (cubic)"], 1),
        (&["Homa", "TCP (cubic)", "DCTCP"], 3),
        (&["Homa"], 8),
        (&["Homa", "TCP (cubic)", "DCTCP"], 3),
    ];
    read(&sample::page().html(), |page| {
        for (svg, (names, times)) in all(page.root_element(), "svg").zip(expected) {
            for name in names {
                let drawn = svg.descendants();
                let drawn = drawn.filter(|node| node.attribute("data-row") == Some(name));
                assert_eq!(drawn.count(), times, "{name}");
                let mut labels = labels(svg).into_iter();
                assert!(labels.any(|label| label.text.starts_with(name)), "{name}");
            }
        }
        let published = "Homa, published (the paper it comes from; these are made up)";
        assert!(text(page.root_element()).contains(published));
    });
}

#[test]
fn picture__a_row_has_one_colour_in_all_of_them() {
    read(&sample::page().html(), |page| {
        let mut classes: HashSet<&str> = HashSet::new();
        for row in rows(page.root_element(), "DCTCP") {
            classes.insert(row.attribute("class").unwrap());
        }
        assert_eq!(classes, HashSet::from(["r2"]));
    });
}

#[test]
fn picture__no_labels_overlap_or_leave_it() {
    read(&sample::page().html(), |page| {
        for svg in all(page.root_element(), "svg") {
            let size = numbers(svg.attribute("viewBox").unwrap());
            let labels = labels(svg);
            for (index, a) in labels.iter().enumerate() {
                assert!(a.left >= 0.0 && a.right <= size[2], "{}", a.text);
                assert!(a.y >= 10.0 && a.y <= size[3] - 2.0, "{}", a.text);
                for b in &labels[..index] {
                    let apart = a.right <= b.left || b.right <= a.left;
                    assert!(
                        apart || (a.y - b.y).abs() >= 11.0,
                        "{} and {}",
                        a.text,
                        b.text
                    );
                }
            }
        }
    });
}

#[test]
fn slowdown__a_step_is_as_wide_as_its_share() {
    let page = page_with(Picture::Slowdown(slowdown(vec![Measured::of(3.0, 500); 3])));
    let line = first_line(&page.html(), "Homa");
    let xs: Vec<f64> = line.iter().step_by(2).copied().collect();
    let whole = xs[xs.len() - 1] - xs[0];
    assert!(((xs[1] - xs[0]) / whole - 0.25).abs() < 0.001);
    assert!(((xs[5] - xs[4]) / whole - 0.5).abs() < 0.001);
    read(&page.html(), |page| {
        let texts: Vec<String> = labels(page.root_element())
            .into_iter()
            .map(|l| l.text)
            .collect();
        for size in ["100\u{a0}B", "1\u{a0}kB", "1\u{a0}MB"] {
            assert!(texts.iter().any(|text| text == size), "{size}");
        }
    });
}

#[test]
fn slowdown__what_is_missing_is_a_gap_that_is_explained() {
    let p99 = vec![
        Measured::of(3.0, 500),
        Measured::too_few(37),
        Measured::of(f64::NAN, 9),
    ];
    let html = page_with(Picture::Slowdown(slowdown(p99))).html();
    assert_eq!(first_line(&html, "Homa").len(), 4, "one step");
    let said = read(&html, |page| text(page.root_element()));
    let note =
        "99th percentile of Homa: not enough samples up to 1\u{a0}kB (n=37), up to 1\u{a0}MB (n=9)";
    assert!(said.contains(note), "{said}");
}

#[test]
fn slowdown__a_gap_in_the_middle_is_not_bridged() {
    let p99 = vec![
        Measured::of(3.0, 500),
        Measured::too_few(37),
        Measured::of(4.0, 500),
    ];
    let html = page_with(Picture::Slowdown(slowdown(p99))).html();
    read(&html, |page| {
        let row = rows(page.root_element(), "Homa")[0];
        let path = all(row, "path").next().unwrap();
        assert_eq!(path.attribute("d").unwrap().matches('M').count(), 2);
    });
}

#[test]
fn slowdown__nothing_at_all_is_said_in_the_plot() {
    let html = page_with(Picture::Slowdown(slowdown(vec![Measured::too_few(4); 3]))).html();
    assert!(html.contains("not enough samples (n=12)"));
    assert!(first_line(&html, "Homa").is_empty());
}

#[test]
fn slowdown__infinite_is_at_the_top_edge() {
    let p99 = vec![
        Measured::of(3.0, 500),
        Measured::of(40.0, 500),
        Measured::of(f64::INFINITY, 500),
    ];
    let html = page_with(Picture::Slowdown(slowdown(p99))).html();
    let line = first_line(&html, "Homa");
    let ys: Vec<f64> = line.iter().skip(1).step_by(2).copied().collect();
    read(&html, |page| {
        let border = all(page.root_element(), "rect").next().unwrap();
        let top: f64 = border.attribute("y").unwrap().parse().unwrap();
        assert!((ys[4] - top - 8.0).abs() < 0.2 && ys[4] < ys[2], "{ys:?}");
        assert!(
            labels(page.root_element())
                .iter()
                .any(|label| label.text == "∞")
        );
    });
    assert!(html.contains("did not finish"));
}

#[test]
fn tail__too_few_samples_have_no_line() {
    let tail = Tail {
        of: "latency".into(),
        share_of: "messages".into(),
        unit: Unit::Microseconds,
        rows: vec![
            TailRow::of_values("Homa", (1..1000).map(f64::from)),
            TailRow::of_values("TCP", [5.0, 6.0]),
        ],
    };
    let html = page_with(Picture::Tail(tail)).html();
    read(&html, |page| {
        assert_eq!(rows(page.root_element(), "Homa").len(), 1);
        assert_eq!(rows(page.root_element(), "TCP").len(), 0);
        assert!(text(page.root_element()).contains("TCP: not enough samples (n=2)"));
    });
}

#[test]
fn bars__zero_is_a_bar_and_missing_is_none() {
    let bars = Bars {
        of: "share".into(),
        until: String::new(),
        unit: Unit::Share,
        rows: vec!["Homa".into(), "TCP".into(), "DCTCP".into()],
        groups: vec![BarGroup {
            name: "P7".into(),
            bars: vec![
                Bar::of(0.0, 100),
                Bar {
                    value: Measured::too_few(3),
                    until: None,
                },
            ],
        }],
    };
    read(&page_with(Picture::Bars(bars)).html(), |page| {
        let bars = |name| all(rows(page.root_element(), name)[0], "rect").count();
        assert_eq!((bars("Homa"), bars("TCP"), bars("DCTCP")), (1, 0, 0));
        let said = |name| text(rows(page.root_element(), name)[0]);
        assert_eq!(said("Homa"), "0\u{a0}%");
        assert_eq!(said("TCP"), "not enough samples (n=3)");
        assert_eq!(said("DCTCP"), "not enough samples (n=0)");
    });
}

#[test]
fn bars__infinite_is_beyond_all_others() {
    let bars = Bars {
        of: "time".into(),
        until: String::new(),
        unit: Unit::Microseconds,
        rows: vec!["Homa".into(), "TCP".into()],
        groups: vec![BarGroup {
            name: "step".into(),
            bars: vec![Bar::of(30.0, 9), Bar::of(f64::INFINITY, 9)],
        }],
    };
    read(&page_with(Picture::Bars(bars)).html(), |page| {
        let width = |name| {
            let row = rows(page.root_element(), name)[0];
            let bar = all(row, "rect").next().unwrap();
            bar.attribute("width").unwrap().parse::<f64>().unwrap()
        };
        assert!(width("TCP") >= width("Homa") + 40.0);
        assert_eq!(text(rows(page.root_element(), "TCP")[0]), "∞");
    });
}

#[test]
fn over_time__one_point_and_none() {
    let row = |name: &str, points| TimeRow {
        name: name.into(),
        points,
    };
    let chart = OverTime {
        of: "bytes".into(),
        unit: Unit::Bytes,
        rows: vec![row("one", vec![(5.0, 7.0)]), row("none", vec![])],
        limit: None,
    };
    let html = page_with(Picture::OverTime(chart)).html();
    assert_eq!(first_line(&html, "one").len(), 2);
    assert!(first_line(&html, "none").is_empty());
    assert!(html.contains("not enough samples (n=0)"));
}

#[test]
fn table__values_ratios_and_headlines() {
    let values = vec![Measured::of(2.0, 100), Measured::of(30.0, 100)];
    let table = Table {
        rows: vec!["Homa".into(), "TCP".into()],
        reference: Some(1),
        measures: vec![
            Measure::lower("p99", Unit::Microseconds, values).as_headline(),
            Measure::lower("p99.9", Unit::Plain, vec![Measured::too_few(8)]),
        ],
    };
    read(&page_with(Picture::Table(table)).html(), |page| {
        let root = page.root_element();
        let cells: Vec<String> = all(root, "td").map(text).collect();
        assert_eq!(cells[0], "2.00\u{a0}µs15× lower");
        assert_eq!(cells[1], "30.0\u{a0}µs");
        assert_eq!(cells[2], "not enough samples (n=8)");
        assert_eq!(cells[3], "not enough samples (n=0)");
        let card = root
            .descendants()
            .find(|node| node.attribute("class") == Some("card"));
        assert!(text(card.unwrap()).contains("15× lower"));
    });
}

/// Every text that a caller can give.
fn page_saying(word: &str) -> Page {
    let one = || vec![Measured::of(2.0, 100)];
    let class = SizeClass {
        up_to_bytes: 10,
        cumulative: 1.0,
    };
    let word = || word.to_owned();
    let pictures = vec![
        Picture::Slowdown(Slowdown {
            classes: vec![class],
            rows: vec![SlowdownRow {
                name: word(),
                p50: one(),
                p99: vec![],
            }],
            published: vec![PublishedCurve {
                name: word(),
                source: word(),
                classes: vec![PublishedClass {
                    class,
                    p50: 1.0,
                    p99: 2.0,
                }],
            }],
        }),
        Picture::Tail(Tail {
            of: word(),
            share_of: word(),
            unit: Unit::Bytes,
            rows: vec![
                TailRow::of_values(&word(), [1.0; 30]),
                TailRow::of_values(&word(), []),
            ],
        }),
        Picture::OverTime(OverTime {
            of: word(),
            unit: Unit::Bytes,
            rows: vec![TimeRow {
                name: word(),
                points: vec![(0.0, 1.0)],
            }],
            limit: Some(Limit {
                name: word(),
                value: 2.0,
            }),
        }),
        Picture::Bars(Bars {
            of: word(),
            until: word(),
            unit: Unit::Share,
            rows: vec![word()],
            groups: vec![BarGroup {
                name: word(),
                bars: vec![Bar::of(0.5, 1)],
            }],
        }),
        Picture::Table(Table {
            rows: vec![word(), word()],
            reference: Some(0),
            measures: vec![Measure::lower(&word(), Unit::Plain, one()).as_headline()],
        }),
    ];
    Page {
        title: word(),
        summary: vec![word()],
        rows: vec![word()],
        caveats: vec![word()],
        sections: pictures
            .into_iter()
            .map(|picture| Section {
                heading: word(),
                text: vec![word()],
                picture,
            })
            .collect(),
        slowdown_divisor: word(),
        setup: vec![(word(), word())],
        command: word(),
        version: word(),
        seeds: vec![1],
    }
}

#[test]
fn html__text_of_callers_stays_text() {
    let shape = |html: &str| {
        read(html, |page| {
            let elements = page.descendants().filter(roxmltree::Node::is_element);
            let shape = |node: roxmltree::Node<'_, '_>| {
                (node.tag_name().name().to_owned(), node.attributes().len())
            };
            elements.map(shape).collect::<Vec<_>>()
        })
    };
    let plain = shape(&page_saying("x").html());
    for hostile in [
        "<b>",
        "\"><i>",
        "' a='",
        "&lt;&",
        "]]>",
        "-->",
        "\u{0}\u{1b}",
    ] {
        let html = page_saying(hostile).html();
        assert_eq!(shape(&html), plain, "{hostile:?}");
    }
    let hostile = "</code></pre><script>alert(1)</script>";
    read(&page_saying(hostile).html(), |page| {
        let root = page.root_element();
        assert_eq!(all(root, "script").count(), 0);
        assert_eq!(text(all(root, "code").next().unwrap()), hostile);
        assert_eq!(
            rows(root, "</code></pre><script>alert(1)</script>").len(),
            5
        );
    });
}

#[test]
fn html__an_empty_page() {
    let html = Page::default().html();
    read(&html, |page| {
        let title = all(page.root_element(), "h1").next().unwrap();
        assert_eq!(text(title), "Homa report");
        assert_eq!(all(page.root_element(), "h2").count(), 0);
    });
}
