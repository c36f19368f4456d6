//! A test of own mechanisms beside the built-in ones. It is a single test, because the whole program shares the names of
//! mechanisms.

use coapace_control::{Entry, REGISTRY};
use coapace_run::contender::Contender;
use coapace_scenario::naming::{add, mechanisms, parse_mechanism};

/// Returns a built-in mechanism under another name.
const fn named(name: &'static str) -> Entry {
    Entry { name, ..REGISTRY[0] }
}

#[test]
fn custom_mechanisms_are_registered_under_unused_names() {
    static TAKEN: [Entry; 1] = [named("fasor")];
    static TCP: [Entry; 1] = [named("tcp")];
    static MIX: [Entry; 1] = [named("a+b")];
    static OWN: [Entry; 1] = [named("own")];
    static LATER: [Entry; 1] = [named("later")];
    for (own, expected) in [
        (&TAKEN, "there is a mechanism called \"fasor\"; give yours another name"),
        (&TCP, "a mechanism cannot be called \"tcp\": that is CoAP over TCP"),
        (&MIX, "a mechanism cannot be called \"a+b\": use lower-case letters, digits and hyphens"),
    ] {
        assert_eq!(add(own).unwrap_err(), expected);
    }
    add(&OWN).unwrap();
    assert_eq!(parse_mechanism("own:ack_timeout=3s"), parse_mechanism("default:ack_timeout=3s"));
    assert_eq!(mechanisms().entries().last().unwrap().name, "own");
    let all = Contender::all();
    let labels: Vec<_> = all.iter().map(|contender| contender.label.as_str()).collect();
    assert_eq!(labels[labels.len() - 2..], ["own", "tcp"]);
    assert_eq!(Contender::parse("own+fasor").unwrap().label, "own+fasor");
    assert!(Contender::parse("onw").unwrap_err().contains("did you mean own?"));

    assert_eq!(add(&OWN).unwrap_err(), "there is a mechanism called \"own\"; give yours another name");
    add(&LATER).unwrap();
    assert!(parse_mechanism("own").is_ok() && parse_mechanism("later").is_ok());
}
