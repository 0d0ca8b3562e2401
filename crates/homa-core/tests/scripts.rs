//! Every packet script in `tests/packets`, and what happens to it when the
//! mechanism that it is about is switched off.

#![allow(non_snake_case, reason = "test names are function__case")]

mod script;

use homa_core::Mechanisms;
use script::Script;

fn failures(scripts: &[Script]) -> Vec<String> {
    let run = |script: &Script| script.run(Mechanisms::ALL).err();
    scripts
        .iter()
        .filter_map(run)
        .map(|error| error.to_string())
        .collect()
}

#[test]
fn scripts__all_pass() {
    let scripts = script::all();
    assert!(scripts.len() > 50, "only {} scripts found", scripts.len());
    let failures = failures(&scripts);
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

/// A script that is about a mechanism must need it: fail without it, at a line
/// that says what the mechanism does and not only by a counter.
#[test]
fn scripts__fail_without_their_mechanism() {
    let mut wrong = Vec::new();
    for script in script::all() {
        for name in &script.mechanisms {
            let path = script.path.display();
            match Mechanisms::named(name) {
                None => wrong.push(format!("{path}: no mechanism {name}")),
                Some(mechanism) => match script.run(Mechanisms::ALL.without(mechanism)) {
                    Ok(()) => wrong.push(format!("{path}: passes without {name}")),
                    Err(error) if error.text.ends_with("has not moved") => {
                        wrong.push(format!("without {name} only {error}"));
                    }
                    Err(_) => {}
                },
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Every mechanism has a script that is about it and names a counter.
#[test]
fn mechanisms__each_has_a_script_and_a_counter() {
    let scripts = script::all();
    let missing: Vec<&str> = Mechanisms::NAMES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| {
            !scripts.iter().any(|script| {
                let about = script.mechanisms.iter();
                about.clone().any(|m| m.eq_ignore_ascii_case(name)) && !script.counters.is_empty()
            })
        })
        .collect();
    assert!(missing.is_empty(), "no script is about {missing:?}");
}

/// The runner itself must be able to fail, and to say where.
#[test]
fn script__errors_name_the_line() {
    let cases = [
        ("peer a\nrpc q from a\nout BUSY q", 3, "nothing was sent"),
        ("peer a\nin DATA q off 0 len 1 of 1", 2, "no RPC q"),
        (
            "peer a\nrpc q from a\nin DATA q off 0 len 1 of 1",
            3,
            "unexpected event",
        ),
        ("peer a\nrpc q from a\nin BUSY q", 3, "drop unknown_rpc"),
        (
            "peer a\napp request c to a length 10",
            2,
            "unexpected output",
        ),
        (
            "peer a\napp request c to a length 10\nout DATA c len 11",
            3,
            "len is 10",
        ),
        ("peer a\nrpc q from a bad", 2, "not understood: bad"),
        ("peer a\nno output until 1parsec", 2, "not a time"),
        ("counter timeouts\npeer a", 2, "has not moved"),
    ];
    for (text, line, message) in cases {
        let error = Script::parse("case".into(), text)
            .run(Mechanisms::ALL)
            .expect_err(text);
        assert_eq!(error.line, line, "{error}");
        assert!(error.text.contains(message), "{error}");
    }
}
