//! Arbitrary text as a scenario: it is accepted, or refused with a message.
//!
//! Settings, one `key=value` a line, may follow a line `---`. The text before that line may be the name of a built-in
//! scenario.
#![no_main]

use coapace_scenario::Scenario;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (text, settings) = input.split_once("\n---\n").unwrap_or((input, ""));
    let text = Scenario::builtin(text).map_or(text, |builtin| builtin.text);
    let settings: Vec<_> = settings
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    match Scenario::parse("x", "x.toml", text, &settings) {
        Ok(scenario) => {
            assert!(!scenario.canonical().is_empty());
            assert_eq!(scenario.hash().len(), 16);
            for (name, value) in scenario.knob_values() {
                assert_eq!(scenario.knob(name), Some(value.as_str()));
            }
            let again = Scenario::parse("x", "x.toml", text, &settings).expect("it was read before");
            assert_eq!(again.hash(), scenario.hash());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
