//! The keys, certificates and write permissions of a server or relay, which can be reloaded while it runs.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use coapace_net::ServerHandle;

#[cfg(feature = "tls")]
use crate::arguments::RelayArguments;
use crate::arguments::{ClientKeys, Serve};
use crate::keys::{self, KeysByIdentity};
use crate::rights::{Rights, SharedRights};
#[cfg(not(feature = "tls"))]
use crate::secure::SecureHandle;
use crate::secure::{Certificates, Dtls};
use crate::{Failure, certificates};

/// The files with keys, certificates and permissions, and the values in use.
#[derive(Debug)]
pub(crate) struct Credentials {
    client_keys: ClientKeys,
    /// The identity with which a relay authenticates to its server, and the argument with its key.
    to_server: Option<(String, String)>,
    ca: Option<PathBuf>,
    own: Option<(PathBuf, PathBuf)>,
    rights_file: Option<PathBuf>,
    known: Arc<RwLock<KeysByIdentity>>,
    key_to_server: Arc<RwLock<Vec<u8>>>,
    certificates: RwLock<Certificates>,
    /// The write permissions of clients.
    pub(crate) rights: SharedRights,
}

impl Credentials {
    /// Reads the files given by the arguments of a server.
    ///
    /// # Errors
    /// The failure names the file that cannot be read or used.
    pub(crate) fn of_server(serve: &Serve) -> Result<Self, Failure> {
        Self {
            ca: serve.ca.clone(),
            own: serve.cert.clone().zip(serve.private_key.clone()),
            rights_file: serve.rights.clone(),
            // `read` fills in keys and certificates, by the same path as a later SIGHUP.
            ..Self::none(&serve.client_keys)
        }
        .read()
    }

    /// Reads the files given by the arguments of a relay.
    ///
    /// # Errors
    /// The failure names the file that cannot be read or used.
    #[cfg(feature = "tls")]
    pub(crate) fn of_relay(relay: &RelayArguments) -> Result<Self, Failure> {
        let to_server = relay.server_identity.clone().zip(relay.server_key.clone());
        Self { to_server, ..Self::none(&relay.client_keys) }.read()
    }

    fn none(client_keys: &ClientKeys) -> Self {
        Self {
            client_keys: client_keys.clone(),
            to_server: None,
            ca: None,
            own: None,
            rights_file: None,
            known: Arc::default(),
            key_to_server: Arc::default(),
            certificates: Certificates::new().into(),
            rights: Arc::default(),
        }
    }

    fn read(self) -> Result<Self, Failure> {
        self.reload(&[])?;
        Ok(self)
    }

    /// Returns the number of identities with a key.
    pub(crate) fn identities(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the number of write permissions, if a file of them is given.
    pub(crate) fn rights(&self) -> Option<usize> {
        self.rights.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(Rights::len)
    }

    /// Returns the certificates in use.
    pub(crate) fn certificates(&self) -> Certificates {
        self.certificates.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the period of validity of our own certificate, if there is one.
    pub(crate) fn validity(&self) -> Option<Range<SystemTime>> {
        self.certificates.read().unwrap_or_else(PoisonError::into_inner).validity()
    }

    /// Returns the settings of a server over DTLS, if there are keys. New sessions use the keys of the last reload.
    pub(crate) fn dtls(&self) -> Option<Dtls> {
        // The closure keeps the shared table, so that a reload reaches servers that run.
        let known = self.known.clone();
        let key = move |identity: &[u8]| {
            known.read().unwrap_or_else(PoisonError::into_inner).get(identity).cloned()
        };
        // Without any key every handshake would fail, so no port is bound for DTLS.
        (self.identities() > 0).then(|| Dtls::server(key))
    }

    /// Returns the settings of a relay as a client over DTLS, if it has a key. New sessions use the key of the last reload.
    #[cfg(feature = "tls")]
    pub(crate) fn dtls_to_server(&self) -> Option<Dtls> {
        let key = self.key_to_server.clone();
        let (identity, _) = self.to_server.as_ref()?;
        let key = move || key.read().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Dtls::client_by(identity.as_str(), key))
    }

    /// Reloads all files, for later sessions and connections. If any file is invalid, nothing changes.
    ///
    /// # Errors
    /// The failure names the file that cannot be read or used.
    pub(crate) fn reload(&self, servers: &[ServerHandle]) -> Result<(), Failure> {
        let known = keys::of_clients(&self.client_keys)?;
        let to_server = self.to_server.as_ref().map(|(_, text)| keys::key(text)).transpose()?;
        // All files are read before anything changes, so that a mistake leaves the old keys in use.
        let own = self.own.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        let certificates = certificates::read(self.ca.as_deref(), own)?;
        let rights = self.rights_file.as_deref().map(Rights::read).transpose()?;
        // This comes before the tables change: if a server refuses the certificates, the keys stay, too.
        for server in servers {
            server.set_certificates(&certificates).map_err(|bad| Failure::Input(bad.to_string()))?;
        }
        put(&self.known, known);
        // A relay without DTLS to its server has no key, and then nobody reads this value.
        put(&self.key_to_server, to_server.unwrap_or_default());
        put(&self.certificates, certificates);
        put(&self.rights, rights);
        Ok(())
    }
}

fn put<T>(place: &RwLock<T>, value: T) {
    *place.write().unwrap_or_else(PoisonError::into_inner) = value;
}
