//! Names of mechanisms. A program can add mechanisms of its own to the built-in mechanisms of [`coapace_control`].

use std::sync::{PoisonError, RwLock};

use coapace_control::{Entry, Mechanism, Mechanisms, ParseMechanismError, REGISTRY, unknown};

/// The name of CoAP over TCP (RFC 8323), which is not a mechanism, but is compared with mechanisms.
pub const TCP: &str = "tcp";

/// The summary of `tcp`, in one line.
pub const TCP_SUMMARY: &str = "CoAP over TCP (RFC 8323), simulated with a real TCP";

/// The mechanisms that have a name: the built-in ones, and those added by a program. They are global, so that no
/// function has to pass them on. None is ever removed.
static KNOWN: RwLock<Mechanisms> = RwLock::new(Mechanisms::BUILT_IN);

/// Adds a program's own mechanisms to the known mechanisms.
///
/// # Errors
/// Returns one line if a name is taken or malformed. No mechanism is added then.
pub fn add(own: &'static [Entry]) -> Result<(), String> {
    if let Some(entry) = own.iter().find(|entry| entry.name == TCP) {
        return Err(format!("a mechanism cannot be called {:?}: that is CoAP over TCP", entry.name));
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    // Names are kept until the program ends, as are the entries that they name.
    // `with` adds the built-in entries itself, and they come first in `entries`.
    let all: Vec<Entry> = known.entries().skip(REGISTRY.len()).chain(own).copied().collect();
    *known = Mechanisms::with(Vec::leak(all)).map_err(|error| error.to_string())?;
    Ok(())
}

/// Returns all mechanisms that have a name: the built-in ones, and the ones added with [`add`].
pub fn mechanisms() -> Mechanisms {
    *KNOWN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Parses the name of a mechanism with its parameters: `NAME` or `NAME:parameter=value,…`.
///
/// # Errors
/// Returns a sentence that names the wrong part, the probable intention, and all known names.
pub fn parse_mechanism(text: &str) -> Result<Mechanism, String> {
    mechanisms().parse(text).map_err(|error| error.to_string())
}

/// Parses the name of a mechanism for transfers of bodies, with parameters or without.
///
/// # Errors
/// Returns a sentence as [`parse_mechanism`] does.
pub fn parse_bulk(text: &str) -> Result<Mechanism, String> {
    mechanisms().parse_bulk(text).map_err(|error| error.to_string())
}

/// Parses the name of a mechanism for single exchanges or for transfers of bodies, with parameters or without. Returns
/// the mechanism and its entry.
///
/// # Errors
/// Returns a sentence as [`parse_mechanism`] does.
pub fn parse_any(text: &str) -> Result<(Mechanism, &'static Entry), String> {
    let (known, name) = (mechanisms(), text.split(':').next().unwrap_or(text));
    // A name of both kinds is read as one for single exchanges.
    if let Some(entry) = bulk_alone(name) {
        return parse_bulk(text).map(|mechanism| (mechanism, entry));
    }
    let mechanism = parse_mechanism(text)?;
    known
        .find(name)
        .map(|entry| (mechanism, entry))
        .ok_or_else(|| format!("`{name}` is not the name of a mechanism"))
}

/// Returns the entry of the mechanism that `text` names, if this mechanism is for transfers of bodies only.
pub fn bulk_alone(text: &str) -> Option<&'static Entry> {
    let (known, name) = (mechanisms(), text.split(':').next().unwrap_or(text));
    known.find_bulk(name).filter(|_| known.find(name).is_none())
}

/// Parses a mechanism like [`parse_mechanism`], for callers that accept `tcp` themselves: errors list `tcp` among the
/// known names.
///
/// # Errors
/// Returns the errors of [`parse_mechanism`].
pub fn parse_mechanism_beside_tcp(text: &str) -> Result<Mechanism, String> {
    mechanisms().parse(text).map_err(|error| match error {
        ParseMechanismError::UnknownMechanism { name, known } => {
            let mut line = String::new();
            let names = known.entries().map(|entry| entry.name).chain([TCP]);
            // Writing to a string does not fail.
            unknown(&mut line, "mechanism", name, names).map_or_else(|_| error.to_string(), |()| line)
        }
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse_mechanism(text).unwrap_err()
    }

    #[test]
    fn every_registered_mechanism_parses_with_each_of_its_presets() {
        for entry in REGISTRY {
            assert_eq!(parse_mechanism(entry.name), Ok(entry.mechanism));
            for preset in entry.mechanism.presets() {
                assert!(parse_mechanism(&format!("{}:preset={}", entry.name, preset.name)).is_ok());
            }
        }
    }

    #[test]
    fn parameters_of_a_mechanism_apply_from_left_to_right() {
        let mechanism = |text| parse_mechanism(text).unwrap();
        let literal = mechanism("cocoa:preset=libcoap-2019,vbf_on=initial");
        assert_eq!(literal, mechanism("cocoa:ageing=off,min_rto=1us"));
        assert_eq!(
            mechanism("cocoa:vbf_on=initial,preset=libcoap-2019"),
            mechanism("cocoa:preset=libcoap-2019")
        );
    }

    #[test]
    fn the_error_of_a_misspelt_name_suggests_the_nearest() {
        let error = problem("coca");
        assert!(
            error.starts_with("no mechanism is called \"coca\"; did you mean cocoa? There are default, "),
            "{error}"
        );
        assert!(problem("LINUX_RTO").contains("did you mean linux-rto?"));
        assert!(problem("zzz").starts_with("no mechanism is called \"zzz\". There are "));
    }

    #[test]
    fn the_error_of_a_misspelt_parameter_or_preset_suggests_the_nearest() {
        assert!(
            problem("cocoa:max-rto=9s")
                .contains("no parameter of cocoa is called \"max-rto\"; did you mean max_rto?")
        );
        assert!(problem("fasor:preset=fastslow").contains("did you mean fast-slow?"));
    }

    #[test]
    fn the_error_of_a_wrong_value_names_the_accepted_values() {
        let error = problem("fasor:max_rto=9s,give_up=perhaps");
        assert_eq!(error, "give_up of fasor is keep or advance, not \"perhaps\"");
        assert!(problem("default:,ack_timeout").starts_with("\"ack_timeout\" is not parameter=value"));
    }
}
