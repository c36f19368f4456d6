//! Files and settings that are damaged, by accident or on purpose.

use coapace_scenario::Scenario;

use crate::{SMALLEST, parse};

/// A small random generator to damage texts with (xorshift64).
struct Spoiler(u64);

impl Spoiler {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

const SHARDS: &[&str] = &[
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ".",
    "\"",
    "'",
    ",",
    "\n",
    "#",
    "\0",
    "\u{1b}",
    "é",
    "\u{10ffff}",
    "-",
    "99999999999999999999",
    "0x",
    "[knobs]",
    "[[network.up]]",
    "loss",
    "name",
    "clients.count",
    "1979-05-27",
    "inf",
    "true",
    "%",
    " ms",
    "\"\"\"",
];

#[test]
fn randomly_changed_files_and_settings_give_an_error_in_one_line() {
    let mut spoiler = Spoiler(0x9e37_79b9_7f4a_7c15);
    let texts: Vec<_> = Scenario::builtins().map(|builtin| builtin.text).chain([SMALLEST, ""]).collect();
    let mut accepted = 0;
    for _ in 0..3_000 {
        let mut text: Vec<char> = texts[spoiler.next(texts.len())].chars().collect();
        for _ in 0..=spoiler.next(4) {
            let place = spoiler.next(text.len() + 1);
            let end = (place + spoiler.next(12)).min(text.len());
            let shard = SHARDS[spoiler.next(SHARDS.len())];
            let keep = spoiler.next(3) == 0;
            text.splice(if keep { place..place } else { place..end }, shard.chars());
        }
        let text: String = text.into_iter().collect();
        let key: String = (0..spoiler.next(4)).map(|_| SHARDS[spoiler.next(SHARDS.len())]).collect();
        let value: String = (0..spoiler.next(4)).map(|_| SHARDS[spoiler.next(SHARDS.len())]).collect();
        for set in [&[][..], &[(key.as_str(), value.as_str())], &[("clients.count", value.as_str())]] {
            match parse(&text, set) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    assert!(!error.contains(char::is_control), "{error:?}");
                    assert!(error.len() < 2_000, "{error:?}");
                }
            }
        }
    }
    assert!(accepted > 100, "only {accepted} survived: the test spoils too much to see anything");
}

#[test]
fn a_scenario_file_of_absurd_size_is_refused() {
    let text = format!("{SMALLEST}{}", "#".repeat(100_000));
    assert_eq!(parse(&text, &[]).unwrap_err(), "scenarios/x.toml:1: longer than 65536 bytes");
}

#[test]
fn deeply_nested_scenario_files_are_refused() {
    for (open, close) in [("[", "]"), ("{a=", "}")] {
        let text = format!("title = {}1{}", open.repeat(10_000), close.repeat(10_000));
        assert!(parse(&text, &[]).unwrap_err().starts_with("scenarios/x.toml:1: not TOML: "));
    }
    let path = vec!["a"; 30_000].join(".");
    assert!(parse(&format!("{path} = 1"), &[]).is_err());
    assert!(parse(SMALLEST, &[(path.as_str(), "1")]).is_err());
    assert!(parse(SMALLEST, &[("title", &"[".repeat(100_000))]).is_err());
}

#[test]
fn control_characters_are_escaped_in_errors_about_scenarios() {
    let error = parse(SMALLEST, &[("clients.count", "\u{1b}[2J\n")]).unwrap_err();
    assert!(!error.contains(char::is_control), "{error:?}");
}
