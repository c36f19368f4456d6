//! Addresses in arguments.

use std::net::SocketAddr;

use coapace_net::BadZone;

use crate::Failure;

/// Returns the addresses that an argument names.
pub(crate) fn named(flag: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    named_as(flag, "[::]:5683", text)
}

/// Returns the addresses that an argument names. The error has this example.
pub(crate) fn named_as(flag: &str, example: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    coapace_net::addresses(text).map_err(|error| {
        Failure::Usage(match error.get_ref() {
            Some(bad) if bad.is::<BadZone>() => format!("{flag} {text}: {bad}"),
            _ => format!("{flag} takes ADDRESS:PORT, as {example}, not {text:?} ({error})"),
        })
    })
}

/// Returns the first address that an argument names.
pub(crate) fn first(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    let no_address = || Failure::Network(format!("{flag} {text}: the name has no address"));
    named(flag, text)?.first().copied().ok_or_else(no_address)
}
