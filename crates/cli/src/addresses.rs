//! Addresses in arguments.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::Failure;

/// Returns the addresses that an argument names.
pub(crate) fn named(flag: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let addresses = text.to_socket_addrs().map_err(|error| {
        Failure::Usage(format!("{flag} takes ADDRESS:PORT, as [::]:5683, not {text:?} ({error})"))
    })?;
    Ok(addresses.collect())
}

/// Returns the first address that an argument names.
pub(crate) fn first(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    let no_address = || Failure::Network(format!("{flag} {text}: the name has no address"));
    named(flag, text)?.first().copied().ok_or_else(no_address)
}
