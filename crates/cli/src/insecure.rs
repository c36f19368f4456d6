//! Replaces DTLS and TLS if the command is built without the feature `tls`: every option for them is refused.

#![allow(clippy::unused_self, reason = "the functions are called like those that do something")]

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::time::{Duration, SystemTime};

use coapace_net::{ClientBuilder, Server, ServerConfig, ServerHandle};

/// The settings of DTLS, which no server or client accepts in this build.
#[derive(Clone, Debug)]
pub(crate) struct Dtls;

/// Certificates, of which there are none in this build.
#[derive(Clone, Debug)]
pub(crate) struct Certificates;

/// The error for every use of DTLS, TLS or a certificate in this build.
#[derive(Debug)]
pub(crate) struct BadCertificate;

impl fmt::Display for BadCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this coapace was built without the feature tls")
    }
}

fn absent<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, BadCertificate.to_string()))
}

impl Dtls {
    pub(crate) fn client(_: &str, _: Vec<u8>) -> Self {
        Self
    }

    pub(crate) fn server(_: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Self {
        Self
    }

    pub(crate) fn handshake_timeout(self, _: Duration) -> Self {
        self
    }
}

impl Certificates {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn trust(self, _: &[u8]) -> Result<Self, BadCertificate> {
        Err(BadCertificate)
    }

    pub(crate) fn identity(self, _: &[u8], _: &[u8]) -> Result<Self, BadCertificate> {
        Err(BadCertificate)
    }

    pub(crate) fn validity(&self) -> Option<Range<SystemTime>> {
        None
    }
}

/// Replaces the methods that the feature `tls` adds to a client.
pub(crate) trait SecureClient: Sized {
    fn dtls(self, dtls: Dtls) -> Self;
    fn certificates(self, certificates: &Certificates) -> Result<Self, BadCertificate>;
}

impl SecureClient for ClientBuilder {
    fn dtls(self, _: Dtls) -> Self {
        self
    }

    fn certificates(self, _: &Certificates) -> Result<Self, BadCertificate> {
        Err(BadCertificate)
    }
}

/// Replaces the methods that the feature `tls` adds to a server.
pub(crate) trait SecureServer: Sized {
    fn bind_dtls(_: &[SocketAddr], _: ServerConfig, _: &Dtls) -> io::Result<Self> {
        absent()
    }

    fn adopt_dtls(_: Vec<UdpSocket>, _: ServerConfig, _: &Dtls) -> io::Result<Self> {
        absent()
    }

    fn bind_tls(_: &[SocketAddr], _: ServerConfig, _: &Certificates) -> io::Result<Self> {
        absent()
    }

    fn bind_wss(_: &[SocketAddr], _: ServerConfig, _: &Certificates) -> io::Result<Self> {
        absent()
    }

    fn adopt_tls(_: TcpListener, _: ServerConfig, _: &Certificates) -> io::Result<Self> {
        absent()
    }

    fn adopt_wss(_: TcpListener, _: ServerConfig, _: &Certificates) -> io::Result<Self> {
        absent()
    }
}

impl SecureServer for Server {}

/// Replaces the method that the feature `tls` adds to a running server.
pub(crate) trait SecureHandle {
    fn set_certificates(&self, certificates: &Certificates) -> Result<(), BadCertificate>;
}

impl SecureHandle for ServerHandle {
    /// Changes nothing: servers with certificates cannot be bound.
    fn set_certificates(&self, _: &Certificates) -> Result<(), BadCertificate> {
        Ok(())
    }
}
