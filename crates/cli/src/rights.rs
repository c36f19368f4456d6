//! Write permissions: the file of `coapace serve --rights`.

use std::fs;
use std::path::Path;
use std::sync::{Arc, RwLock};

use coapace_net::uri::percent_decoded;
use coapace_net::{Identity, Request};

use crate::Failure;

/// The permissions of clients to write files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights(Vec<Right>);

/// The permissions in use, which a reload replaces. `None` if every client may write everything.
pub(crate) type SharedRights = Arc<RwLock<Option<Rights>>>;

/// The permission of an identity to write a path, and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Right {
    path: Vec<Vec<u8>>,
    /// The identity of the client. `None` means every client that has proved an identity.
    identity: Option<Vec<u8>>,
}

impl Rights {
    /// Reads a file with a line `PATH IDENTITY` for each permission. The path is percent-encoded like in a URI. The identity is
    /// everything after the first blank: a PSK identity, the subject of a certificate, or `*`. `#` begins a comment.
    ///
    /// # Errors
    /// A file that cannot be read, and the first malformed line.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let name = file.display();
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::Io(format!("cannot read the rights in {name}"), error))?;
        let mut rights = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let right =
                    right(line).map_err(|wrong| Failure::Input(format!("{name}, line {number}: {wrong}")))?;
                rights.push(right);
            }
        }
        Ok(Self(rights))
    }

    /// Returns the number of permissions.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the client of a request may write the path of the request.
    pub(crate) fn allow(&self, request: &Request) -> bool {
        // Without a right for everybody, an unknown client may write nothing.
        let Some(identity) = request.peer_identity() else { return false };
        let name = match identity {
            Identity::Psk(identity) => identity.as_slice(),
            // A subject and a PSK identity of the same text are the same client here.
            Identity::Certificate(certificate) => certificate.subject().as_bytes(),
            // A kind of identity that this version does not know gives no right.
            _ => return false,
        };
        self.covers(name, &request.message().uri_path().collect::<Vec<_>>())
    }

    fn covers(&self, name: &[u8], path: &[&[u8]]) -> bool {
        // Whole segments are compared: a right for /up does not cover /uploads.
        self.0.iter().any(|right| {
            right.identity.as_ref().is_none_or(|identity| identity == name)
                && path.len() >= right.path.len()
                && right.path.iter().zip(path).all(|(segment, asked)| segment == asked)
        })
    }
}

/// Parses the line of a permission.
fn right(line: &str) -> Result<Right, &'static str> {
    let expected = "expected PATH IDENTITY, such as /uploads/lamp-7 lamp-7";
    // A path has no blank, since it is percent-encoded. An identity, such as a subject, may have some.
    let (path, identity) = line.split_once([' ', '\t']).ok_or(expected)?;
    let path = path.strip_prefix('/').ok_or("the path must begin with a slash")?;
    // "/uploads/" and "/uploads" name one place, and "/" names everything.
    let segments = path.strip_suffix('/').unwrap_or(path).split('/').filter(|_| !path.is_empty());
    let decoded: Option<Vec<Vec<u8>>> = segments.map(percent_decoded).collect();
    let path = decoded.ok_or("two hexadecimal digits must follow a % in the path")?;
    if path.iter().any(Vec::is_empty) {
        return Err("a segment of the path is empty");
    }
    let identity = match identity.trim() {
        "" => return Err(expected),
        "*" => None,
        identity => Some(identity.as_bytes().to_vec()),
    };
    Ok(Right { path, identity })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(text: &str) -> Rights {
        Rights(text.lines().map(|line| right(line).unwrap()).collect())
    }

    fn may(rights: &Rights, name: &str, path: &str) -> bool {
        let segments: Vec<&[u8]> = path.split('/').skip(1).map(str::as_bytes).collect();
        rights.covers(name.as_bytes(), &segments)
    }

    #[test]
    fn a_write_permission_covers_its_path_and_all_paths_below_it() {
        let rights = rights("/up/lamp-7 lamp-7\n/shared/ *\n/a%20b CN=lamp 8,O=Lamps");
        for (name, path, allowed) in [
            ("lamp-7", "/up/lamp-7", true),
            ("lamp-7", "/up/lamp-7/log/1", true),
            ("lamp-7", "/up/lamp-77", false),
            ("lamp-7", "/up", false),
            ("lamp-7", "/up/lamp-8", false),
            ("lamp-8", "/up/lamp-7", false),
            ("lamp-8", "/shared/x", true),
            ("CN=lamp 8,O=Lamps", "/a b", true),
            ("CN=lamp 8", "/a b", false),
        ] {
            assert_eq!(may(&rights, name, path), allowed, "{name} {path}");
        }
        assert!(may(&self::rights("/ lamp-7"), "lamp-7", "/x"), "a slash is everything");
        assert!(!may(&Rights::default(), "lamp-7", "/x"));
    }

    #[test]
    fn a_line_that_is_not_a_write_permission_is_refused() {
        for line in ["/up", "up lamp-7", "/up/%zz lamp-7", "/up//x lamp-7", "/up  "] {
            assert!(right(line).is_err(), "{line}");
        }
    }
}
