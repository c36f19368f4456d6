//! Certificates that last as long as a test, and files of them for other programs.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// A root, and the certificates that it signs.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // Roots of the same name would be taken for one another.
        let name = format!("root {:?}", &key.public_key_raw()[1..9]);
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for these names and addresses, the first its common name.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        self.sign(names, |_| ())
    }

    /// Issues a certificate that was good until the end of the year 2000.
    pub(crate) fn issue_expired(&self, names: &[&str]) -> Issued {
        self.sign(names, |params| params.not_after = date_time_ymd(2000, 12, 31))
    }

    /// Issues a certificate that is good until a moment.
    pub(crate) fn issue_until(&self, names: &[&str], end: SystemTime) -> Issued {
        self.sign(names, |params| params.not_after = end.into())
    }

    fn sign(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        change(&mut params);
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, names[0]);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}

/// A folder that goes with the test.
pub(crate) struct Files(PathBuf);

impl Files {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("coapace-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path: &Path = &self.0.join(name);
        std::fs::write(path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
