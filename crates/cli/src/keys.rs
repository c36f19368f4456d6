//! Pre-shared keys from arguments and files.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::Failure;
use crate::arguments::ClientKeys;
use crate::message::bytes_of_hex;

/// Reads a pre-shared key: text, hexadecimal digits after `0x`, or `@FILE` for a file with either, without the line break at
/// its end.
///
/// # Errors
/// A file that cannot be read, invalid digits, and an empty key.
pub(crate) fn key(text: &str) -> Result<Vec<u8>, Failure> {
    // A key in a file is not visible in the list of processes.
    let Some(path) = text.strip_prefix('@') else { return plain(text.as_bytes()) };
    let bytes =
        fs::read(path).map_err(|error| Failure::Io(format!("cannot read the key in {path}"), error))?;
    // An editor ends the file with a line break, which is not part of the key.
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    plain(line.strip_suffix(b"\r").unwrap_or(line))
}

fn plain(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let key = match text.strip_prefix(b"0x") {
        Some(digits) => bytes_of_hex(digits).ok_or_else(|| {
            Failure::Usage("a key must have pairs of hexadecimal digits after 0x".to_owned())
        })?,
        None => text.to_vec(),
    };
    if key.is_empty() { Err(Failure::Usage("a key must not be empty".to_owned())) } else { Ok(key) }
}

/// Keys by identity.
pub(crate) type KeysByIdentity = HashMap<Vec<u8>, Vec<u8>>;

/// Reads the identities and keys of a server's clients, from arguments and from a [file](of_file).
///
/// # Errors
/// Errors of [`key`] and of the file, an identity without a key, and a duplicate identity.
pub(crate) fn of_clients(arguments: &ClientKeys) -> Result<KeysByIdentity, Failure> {
    let ClientKeys { identities, keys, keys_file } = arguments;
    if identities.len() != keys.len() {
        return Err(Failure::Usage(format!(
            "each identity needs a key: -u is given {} times, and -k {} times",
            identities.len(),
            keys.len()
        )));
    }
    let mut known = keys_file.as_deref().map_or(Ok(KeysByIdentity::new()), of_file)?;
    for (identity, text) in identities.iter().zip(keys) {
        if known.insert(identity.clone().into_bytes(), key(text)?).is_some() {
            // The file's key and the argument's would both be plausible, so none of them is chosen silently.
            return Err(Failure::Usage(format!("the identity {identity} has a key already")));
        }
    }
    Ok(known)
}

/// Reads a file of keys in the format of libcoap's coap-server (`-i`). A line has a hint, an identity and a key,
/// separated by commas; a line that begins with # is a comment. The key is everything after the second comma: text,
/// or hexadecimal digits after `0x`. The hint has no effect, because this server sends none, and may be empty.
///
/// # Errors
/// A file that cannot be read, and the first malformed line.
fn of_file(path: &Path) -> Result<KeysByIdentity, Failure> {
    let name = path.display();
    let bytes =
        fs::read(path).map_err(|error| Failure::Io(format!("cannot read the keys in {name}"), error))?;
    let mut known = KeysByIdentity::new();
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        // The message does not quote the line, because it has a key.
        let wrong = |what: &str| Failure::Input(format!("{name}, line {number}: {what}"));
        // The key may contain commas.
        let mut parts = line.splitn(3, |&byte| byte == b',');
        let (Some(_hint), Some(identity), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong("expected HINT,IDENTITY,KEY; the hint may be empty"));
        };
        if identity.is_empty() {
            return Err(wrong("the identity is empty"));
        }
        // `@FILE` has no meaning here: an `@` belongs to the key.
        let key = plain(key).map_err(|failure| wrong(&failure.to_string()))?;
        if known.insert(identity.to_vec(), key).is_some() {
            return Err(wrong("this identity has a key already"));
        }
    }
    if known.is_empty() { Err(Failure::Input(format!("{name} has no key in it"))) } else { Ok(known) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pre_shared_key_is_text_or_hexadecimal_digits() {
        assert_eq!(key("secret").ok(), Some(b"secret".to_vec()));
        assert_eq!(key("0xCAfe").ok(), Some(vec![0xca, 0xfe]));
        for text in ["", "0x", "0xc", "0xzz"] {
            assert!(matches!(key(text), Err(Failure::Usage(_))), "{text}");
        }
        assert!(matches!(key("@no-such-file"), Err(Failure::Io(..))));
    }

    #[test]
    fn every_identity_needs_its_pre_shared_key() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let of_clients = |identities, keys| {
            of_clients(&ClientKeys { identities: texts(identities), keys: texts(keys), keys_file: None })
        };
        assert!(of_clients(&[], &[]).expect("fine").is_empty());
        assert_eq!(of_clients(&["a", "b"], &["1", "2"]).expect("fine").len(), 2);
        assert!(of_clients(&["a", "b"], &["1"]).is_err());
        assert!(of_clients(&["a", "a"], &["1", "2"]).is_err());
    }
}
