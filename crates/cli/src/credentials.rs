//! The keys and certificates of a server, which can be reloaded while it runs.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use coapace_net::{Certificates, Dtls, ServerHandle};

use crate::arguments::{ClientKeys, Serve};
use crate::keys::{self, Keys};
use crate::{Failure, certificates};

/// The sources of keys and certificates, and the keys in use.
#[derive(Debug)]
pub(crate) struct Credentials {
    client_keys: ClientKeys,
    ca: Option<PathBuf>,
    own: Option<(PathBuf, PathBuf)>,
    known: Arc<RwLock<Keys>>,
    /// The certificates as read at the start.
    pub(crate) certificates: Certificates,
}

impl Credentials {
    /// Reads the files that the arguments name.
    ///
    /// # Errors
    /// The failure names the file that cannot be read or used.
    pub(crate) fn read(serve: &Serve) -> Result<Self, Failure> {
        let mut read = Self {
            client_keys: serve.client_keys.clone(),
            ca: serve.ca.clone(),
            own: serve.cert.clone().zip(serve.private_key.clone()),
            known: Arc::default(),
            certificates: Certificates::new(),
        };
        let (known, certificates) = read.files()?;
        *read.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        read.certificates = certificates;
        Ok(read)
    }

    fn files(&self) -> Result<(Keys, Certificates), Failure> {
        let known = keys::of_clients(&self.client_keys)?;
        let own = self.own.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        Ok((known, certificates::read(self.ca.as_deref(), own)?))
    }

    /// Returns the number of known identities.
    pub(crate) fn identities(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the settings of a server over DTLS, if there are keys. New sessions use the keys of the last reload.
    pub(crate) fn dtls(&self) -> Option<Dtls> {
        let known = self.known.clone();
        let key = move |identity: &[u8]| {
            known.read().unwrap_or_else(PoisonError::into_inner).get(identity).cloned()
        };
        (self.identities() > 0).then(|| Dtls::server(key))
    }

    /// Reads all files again, for sessions and connections that begin later. If any file is bad, nothing changes.
    ///
    /// # Errors
    /// The failure names the file that cannot be read or used.
    pub(crate) fn reload(&self, servers: &[ServerHandle]) -> Result<(), Failure> {
        let (known, certificates) = self.files()?;
        for server in servers {
            server.set_certificates(&certificates).map_err(|bad| Failure::Input(bad.to_string()))?;
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }
}
