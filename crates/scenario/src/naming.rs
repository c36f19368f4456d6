//! Names of mechanisms. A program can add mechanisms of its own to the built-in ones of [`coapace_control`].

use std::sync::{PoisonError, RwLock};

use coapace_control::{Entry, Mechanism, Mechanisms, ParseMechanismError, REGISTRY, unknown};

/// The name for CoAP over TCP (RFC 8323), which is compared with mechanisms without being one.
pub const TCP: &str = "tcp";

/// The mechanisms that can be named. They are never taken away, so no function has to pass them on.
static KNOWN: RwLock<Mechanisms> = RwLock::new(Mechanisms::BUILT_IN);

/// Adds a program's own mechanisms to the known ones.
///
/// # Errors
/// Returns one line if a name is taken or malformed. Then none is added.
pub fn add(own: &'static [Entry]) -> Result<(), String> {
    if let Some(entry) = own.iter().find(|entry| entry.name == TCP) {
        return Err(format!("a mechanism cannot be called {:?}: that is CoAP over TCP", entry.name));
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    // Names are kept until the program ends, as are the entries that they name.
    let all: Vec<Entry> = known.entries().skip(REGISTRY.len()).chain(own).copied().collect();
    *known = Mechanisms::with(Vec::leak(all)).map_err(|error| error.to_string())?;
    Ok(())
}

/// Returns the mechanisms that can be named.
pub fn mechanisms() -> Mechanisms {
    *KNOWN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Reads `NAME` or `NAME:parameter=value,…`.
///
/// # Errors
/// Returns a sentence that names the wrong part, the likely intention, and all that is known.
pub fn parse_mechanism(text: &str) -> Result<Mechanism, String> {
    mechanisms().parse(text).map_err(|error| error.to_string())
}

/// Reads the name of a mechanism for bodies, with parameters or without.
///
/// # Errors
/// Returns a sentence as [`parse_mechanism`] does.
pub fn parse_bulk(text: &str) -> Result<Mechanism, String> {
    mechanisms().parse_bulk(text).map_err(|error| error.to_string())
}

/// Reads the name of a mechanism for single exchanges or for bodies, with parameters or without. Returns its entry, too.
///
/// # Errors
/// Returns a sentence as [`parse_mechanism`] does.
pub fn parse_any(text: &str) -> Result<(Mechanism, &'static Entry), String> {
    let (known, name) = (mechanisms(), text.split(':').next().unwrap_or(text));
    if let Some(entry) = bulk_alone(name) {
        return parse_bulk(text).map(|mechanism| (mechanism, entry));
    }
    let mechanism = parse_mechanism(text)?;
    known.find(name).map(|entry| (mechanism, entry)).ok_or_else(|| format!("there is no mechanism `{name}`"))
}

/// Returns the entry of the mechanism that this text names, if it is for bodies and not for single exchanges.
pub fn bulk_alone(text: &str) -> Option<&'static Entry> {
    let (known, name) = (mechanisms(), text.split(':').next().unwrap_or(text));
    known.find_bulk(name).filter(|_| known.find(name).is_none())
}

/// Reads a mechanism where `tcp` is a known name, too.
///
/// # Errors
/// Returns the errors of [`parse_mechanism`].
pub fn parse_mechanism_beside_tcp(text: &str) -> Result<Mechanism, String> {
    mechanisms().parse(text).map_err(|error| match error {
        ParseMechanismError::UnknownMechanism { name, known } => {
            let mut told = String::new();
            let names = known.entries().map(|entry| entry.name).chain([TCP]);
            unknown(&mut told, "mechanism", name, names).map_or_else(|_| error.to_string(), |()| told)
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
        assert_eq!(literal, mechanism("cocoa:ageing=off,min_rto=1us"));
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
