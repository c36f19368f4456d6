//! The keys, certificates and rights of a server or relay, which can be reloaded while it runs.

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

/// The sources of keys, certificates and rights, and those in use.
#[derive(Debug)]
pub(crate) struct Credentials {
    client_keys: ClientKeys,
    /// The identity and the argument of the key of a relay, as a client of its server.
    to_server: Option<(String, String)>,
    ca: Option<PathBuf>,
    own: Option<(PathBuf, PathBuf)>,
    rights_file: Option<PathBuf>,
    known: Arc<RwLock<KeysByIdentity>>,
    key_to_server: Arc<RwLock<Vec<u8>>>,
    certificates: RwLock<Certificates>,
    /// Who may write which files.
    pub(crate) rights: SharedRights,
}

impl Credentials {
    /// Reads the files that the arguments of a server name.
    ///
    /// # Errors
    /// The failure names the file that cannot be read or used.
    pub(crate) fn of_server(serve: &Serve) -> Result<Self, Failure> {
        Self {
            ca: serve.ca.clone(),
            own: serve.cert.clone().zip(serve.private_key.clone()),
            rights_file: serve.rights.clone(),
            ..Self::none(&serve.client_keys)
        }
        .read()
    }

    /// Reads the files that the arguments of a relay name.
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

    /// Returns the number of known identities.
    pub(crate) fn identities(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the number of rights to write, if they are given.
    pub(crate) fn rights(&self) -> Option<usize> {
        self.rights.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(Rights::len)
    }

    /// Returns the certificates in use.
    pub(crate) fn certificates(&self) -> Certificates {
        self.certificates.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the time during which the own certificate is valid, if there is one.
    pub(crate) fn validity(&self) -> Option<Range<SystemTime>> {
        self.certificates.read().unwrap_or_else(PoisonError::into_inner).validity()
    }

    /// Returns the settings of a server over DTLS, if there are keys. New sessions use the keys of the last reload.
    pub(crate) fn dtls(&self) -> Option<Dtls> {
        let known = self.known.clone();
        let key = move |identity: &[u8]| {
            known.read().unwrap_or_else(PoisonError::into_inner).get(identity).cloned()
        };
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

    /// Reads all files again, for sessions and connections that begin later. If any file is bad, nothing changes.
    ///
    /// # Errors
    /// The failure names the file that cannot be read or used.
    pub(crate) fn reload(&self, servers: &[ServerHandle]) -> Result<(), Failure> {
        let known = keys::of_clients(&self.client_keys)?;
        let to_server = self.to_server.as_ref().map(|(_, text)| keys::key(text)).transpose()?;
        let own = self.own.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        let certificates = certificates::read(self.ca.as_deref(), own)?;
        let rights = self.rights_file.as_deref().map(Rights::read).transpose()?;
        for server in servers {
            server.set_certificates(&certificates).map_err(|bad| Failure::Input(bad.to_string()))?;
        }
        put(&self.known, known);
        put(&self.key_to_server, to_server.unwrap_or_default());
        put(&self.certificates, certificates);
        put(&self.rights, rights);
        Ok(())
    }
}

fn put<T>(place: &RwLock<T>, value: T) {
    *place.write().unwrap_or_else(PoisonError::into_inner) = value;
}
