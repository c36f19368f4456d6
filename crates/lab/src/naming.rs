//! Mechanisms named by people: what is wrong with a name, and which was probably meant.

use coapace_control::{Entry, Mechanism, ParseMechanismError, REGISTRY, SetError};

/// Reads `NAME` or `NAME:parameter=value,…`.
///
/// # Errors
/// A sentence that names the offending part, what was probably meant, and what there is.
pub fn parse_mechanism(text: &str) -> Result<Mechanism, String> {
    parse_mechanism_beside(&[], text)
}

/// The same where there are `others` that can be named, too.
pub(crate) fn parse_mechanism_beside(others: &[&'static str], text: &str) -> Result<Mechanism, String> {
    text.parse().map_err(|error| explain(others, text, error))
}

fn explain(others: &[&'static str], text: &str, error: ParseMechanismError) -> String {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let Some(entry) = Entry::find(name) else {
        let registered = REGISTRY.iter().map(|entry| entry.name);
        return unknown("mechanism", name, registered.chain(others.iter().copied()));
    };
    // Counted as the parser counts them: it passes over what is empty.
    let setting = |place| settings.split(',').filter(|setting| !setting.is_empty()).nth(place).unwrap_or("");
    let halves = |place| {
        let (parameter, value) = setting(place).split_once('=').unwrap_or((setting(place), ""));
        (parameter.trim(), value.trim())
    };
    match error {
        ParseMechanismError::UnknownMechanism => format!("no mechanism is called {name:?}"),
        ParseMechanismError::NotAnAssignment(place) => {
            format!(
                "{:?} is no parameter=value; a mechanism is NAME or NAME:parameter=value,...",
                setting(place)
            )
        }
        ParseMechanismError::Parameter(place, error) => {
            let (parameter, value) = halves(place);
            let of = |what: &str| format!("{what} of {name}");
            match error {
                SetError::UnknownParameter => {
                    let known = entry.mechanism.parameters().iter().map(|parameter| parameter.name);
                    unknown(&of("parameter"), parameter, known.chain(["preset"]))
                }
                SetError::UnknownPreset => {
                    let known = entry.mechanism.presets().iter().map(|preset| preset.name);
                    unknown(&of("preset"), value, known)
                }
                SetError::BadValue(kind) => format!("{parameter} of {name} is {kind}, not {value:?}"),
            }
        }
    }
}

fn unknown(what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let known: Vec<_> = known.collect();
    let meant = nearest(name, &known).map_or(".".to_owned(), |meant| format!("; did you mean {meant}?"));
    format!("no {what} is called {name:?}{meant} There {}", alternatives(&known))
}

fn alternatives(known: &[&str]) -> String {
    match known {
        [] => "are none".to_owned(),
        [one] => format!("is {one}"),
        [most @ .., last] => format!("are {} and {last}", most.join(", ")),
    }
}

/// The name that differs least, if it differs by little.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase().replace('_', "-");
    let likeness = |known: &str| strsim::jaro_winkler(&name, &known.replace('_', "-"));
    let best = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse_mechanism(text).unwrap_err()
    }

    #[test]
    fn every_registered_name_is_read_with_each_of_its_presets() {
        for entry in REGISTRY {
            assert_eq!(parse_mechanism(entry.name), Ok(entry.mechanism));
            for preset in entry.mechanism.presets() {
                assert!(parse_mechanism(&format!("{}:preset={}", entry.name, preset.name)).is_ok());
            }
        }
    }

    #[test]
    fn settings_apply_from_left_to_right() {
        let mechanism = |text| parse_mechanism(text).unwrap();
        let literal = mechanism("cocoa:preset=libcoap-2019,vbf_on=initial");
        assert_eq!(literal, mechanism("cocoa:ageing=off"));
        assert_eq!(
            mechanism("cocoa:vbf_on=initial,preset=libcoap-2019"),
            mechanism("cocoa:preset=libcoap-2019")
        );
    }

    #[test]
    fn a_misspelt_name_is_told_with_the_nearest() {
        let told = problem("coca");
        assert!(
            told.starts_with("no mechanism is called \"coca\"; did you mean cocoa? There are default, "),
            "{told}"
        );
        assert!(problem("LINUX_RTO").contains("did you mean linux-rto?"));
        assert!(problem("zzz").starts_with("no mechanism is called \"zzz\". There are "));
    }

    #[test]
    fn a_misspelt_parameter_or_preset_is_told_with_the_nearest() {
        assert!(
            problem("cocoa:max-rto=9s")
                .contains("no parameter of cocoa is called \"max-rto\"; did you mean max_rto?")
        );
        assert!(problem("fasor:preset=fastslow").contains("did you mean fast-slow?"));
    }

    #[test]
    fn a_value_that_does_not_fit_is_told_with_what_does() {
        let told = problem("fasor:max_rto=9s,give_up=perhaps");
        assert_eq!(told, "give_up of fasor is keep or advance, not \"perhaps\"");
        assert!(problem("default:,ack_timeout").starts_with("\"ack_timeout\" is no parameter=value"));
    }
}
