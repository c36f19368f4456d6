//! Pre-shared keys, as arguments give them.

use std::collections::HashMap;
use std::fs;

use coapace_net::Dtls;

use crate::Failure;
use crate::message::bytes_of_hex;

/// A key: text, hexadecimal digits behind `0x`, or either in a file behind `@`, without the end of its line.
///
/// # Errors
/// A file that cannot be read, digits that are none, and a key of nothing.
pub(crate) fn key(text: &str) -> Result<Vec<u8>, Failure> {
    let Some(path) = text.strip_prefix('@') else { return plain(text.as_bytes()) };
    let bytes =
        fs::read(path).map_err(|error| Failure::Io(format!("cannot read the key in {path}"), error))?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    plain(line.strip_suffix(b"\r").unwrap_or(line))
}

fn plain(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let key = match text.strip_prefix(b"0x") {
        Some(digits) => bytes_of_hex(digits)
            .ok_or_else(|| Failure::Usage("a key has pairs of hexadecimal digits behind 0x".to_owned()))?,
        None => text.to_vec(),
    };
    if key.is_empty() { Err(Failure::Usage("a key is not empty".to_owned())) } else { Ok(key) }
}

/// What a server knows its clients by; nothing without identities.
///
/// # Errors
/// Those of each [`key`], identities without a key, and one that is there twice.
pub(crate) fn of_clients(identities: &[String], keys: &[String]) -> Result<Option<Dtls>, Failure> {
    if identities.len() != keys.len() {
        return Err(Failure::Usage(format!(
            "each identity has its key: {} of -u and {} of -k do not match",
            identities.len(),
            keys.len()
        )));
    }
    let mut known = HashMap::new();
    for (identity, text) in identities.iter().zip(keys) {
        if known.insert(identity.clone().into_bytes(), key(text)?).is_some() {
            return Err(Failure::Usage(format!("the identity {identity} has a key already")));
        }
    }
    Ok((!known.is_empty()).then(|| Dtls::server(move |identity| known.get(identity).cloned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_text_or_hexadecimal_digits() {
        assert_eq!(key("secret").ok(), Some(b"secret".to_vec()));
        assert_eq!(key("0xCAfe").ok(), Some(vec![0xca, 0xfe]));
        for text in ["", "0x", "0xc", "0xzz"] {
            assert!(matches!(key(text), Err(Failure::Usage(_))), "{text}");
        }
        assert!(matches!(key("@no-such-file"), Err(Failure::Io(..))));
    }

    #[test]
    fn identities_and_keys_come_in_pairs() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert!(of_clients(&[], &[]).expect("fine").is_none());
        assert!(of_clients(&texts(&["a", "b"]), &texts(&["1", "2"])).expect("fine").is_some());
        assert!(of_clients(&texts(&["a", "b"]), &texts(&["1"])).is_err());
        assert!(of_clients(&texts(&["a", "a"]), &texts(&["1", "2"])).is_err());
    }
}
