//! Sockets that systemd has bound and passed to this process (sd_listen_fds(3)). An argument names them with `fd:NAME`.

use std::io;
use std::net::{TcpListener, UdpSocket};

use listenfd::ListenFd;

use crate::Failure;

/// The sockets passed by systemd, with their names from FileDescriptorName= in the units. Each socket can be taken
/// once.
pub(crate) struct Passed {
    sockets: ListenFd,
    names: Vec<String>,
}

impl Passed {
    /// Returns the sockets that systemd passed, which it lists in environment variables.
    pub(crate) fn new() -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        // The crate `listenfd` ignores LISTEN_FDNAMES, which has a name for each socket in their order.
        Self { sockets: ListenFd::from_env(), names: names.split(':').map(str::to_owned).collect() }
    }

    /// Returns the NAME of an argument `fd:NAME`; `None` for any other argument.
    pub(crate) fn name(text: &str) -> Option<&str> {
        text.strip_prefix("fd:")
    }

    /// Takes the UDP sockets of this name from those that systemd passed.
    ///
    /// # Errors
    /// If systemd passed no UDP socket of this name.
    pub(crate) fn datagrams(&mut self, flag: &str, name: &str) -> Result<Vec<UdpSocket>, Failure> {
        self.take(flag, name, ListenFd::take_udp_socket)
    }

    /// Takes the listening socket of this name from those that systemd passed.
    ///
    /// # Errors
    /// If systemd passed no TCP socket of this name, or several.
    pub(crate) fn listener(&mut self, flag: &str, name: &str) -> Result<TcpListener, Failure> {
        let mut taken = self.take(flag, name, ListenFd::take_tcp_listener)?;
        match (taken.pop(), taken.is_empty()) {
            // With several sockets of one name, the choice would depend on their order in the units.
            (Some(listener), true) => Ok(listener),
            _ => Err(Failure::Input(format!(
                "{flag} fd:{name}: one socket is expected, and several have this name"
            ))),
        }
    }

    fn take<T>(
        &mut self,
        flag: &str,
        name: &str,
        take: fn(&mut ListenFd, usize) -> io::Result<Option<T>>,
    ) -> Result<Vec<T>, Failure> {
        let (mut taken, mut other) = (Vec::new(), None);
        for at in 0..self.sockets.len() {
            if self.names.get(at).is_some_and(|other| other == name) {
                match take(&mut self.sockets, at) {
                    // A socket that another argument has taken is `None`.
                    Ok(socket) => taken.extend(socket),
                    // A unit may have sockets of both kinds under one name.
                    Err(error) => other = Some(error),
                }
            }
        }
        if let (true, Some(error)) = (taken.is_empty(), other) {
            return Err(Failure::Io(format!("{flag} fd:{name}: not the right kind of socket"), error));
        }
        if taken.is_empty() {
            let known = if self.sockets.len() == 0 { "no sockets".to_owned() } else { self.names.join(", ") };
            return Err(Failure::Input(format!(
                "{flag} fd:{name}: systemd has passed {known}; see FileDescriptorName= in systemd.socket(5)"
            )));
        }
        Ok(taken)
    }
}
