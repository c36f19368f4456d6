//! Addresses in command-line arguments.

use std::io;
use std::net::SocketAddr;

use coapace_net::BadZone;

use crate::Failure;

/// Resolves the value `text` of the option `flag` to its addresses.
pub(crate) fn named(flag: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    named_as(flag, "[::]:5683", text)
}

/// Resolves the value `text` of the option `flag` to its addresses. If it is invalid, the error
/// shows `example`.
pub(crate) fn named_as(flag: &str, example: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    coapace_net::addresses(text).map_err(|error| {
        Failure::Usage(match error.get_ref() {
            // The text of the error lists the interfaces, which says more than an example.
            Some(bad) if bad.is::<BadZone>() => format!("{flag} {text}: {bad}"),
            _ => format!("{flag} takes ADDRESS:PORT, such as {example}, not {text:?} ({error})"),
        })
    })
}

/// Explains why a server cannot bind to the address of an argument.
pub(crate) fn cannot_bind(flag: &str, address: &str, error: &io::Error) -> Failure {
    Failure::Network(match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{address} is in use; name another port with {flag} (0 takes any free one)")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("{address} is not an address of this host; {flag} [::]:PORT listens at all of them")
        }
        io::ErrorKind::PermissionDenied => {
            format!("this user may not bind to {address}; name a port above 1023 with {flag}")
        }
        _ => format!("cannot bind to {address} ({flag}): {error}"),
    })
}

/// Resolves the value `text` of the option `flag` to its first address.
pub(crate) fn first(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    let no_address = || Failure::Network(format!("{flag} {text}: this name has no address"));
    named(flag, text)?.first().copied().ok_or_else(no_address)
}
