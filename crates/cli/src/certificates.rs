//! Certificates and private keys, read from the files that arguments name.

use std::fs;
use std::path::Path;

use crate::Failure;
use crate::secure::{BadCertificate, Certificates};

/// Reads the certificates to trust, and our own certificate with its private key. All files are PEM.
///
/// # Errors
/// A file that cannot be read or has no certificate, and a private key that does not fit the certificate.
pub(crate) fn read(trusted: Option<&Path>, own: Option<(&Path, &Path)>) -> Result<Certificates, Failure> {
    let mut certificates = Certificates::new();
    if let Some(path) = trusted {
        let bad = |bad: BadCertificate| Failure::Input(format!("cannot trust {}: {bad}", path.display()));
        certificates = certificates.trust(&bytes("certificates", path)?).map_err(bad)?;
    }
    if let Some((certificate, key)) = own {
        let bad = |bad: BadCertificate| {
            let (certificate, key) = (certificate.display(), key.display());
            Failure::Input(format!("cannot use {certificate} with the private key in {key}: {bad}"))
        };
        let (chain, private) = (bytes("certificate", certificate)?, bytes("private key", key)?);
        certificates = certificates.identity(&chain, &private).map_err(bad)?;
    }
    Ok(certificates)
}

fn bytes(what: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path)
        .map_err(|error| Failure::Io(format!("cannot read the {what} in {}", path.display()), error))
}
