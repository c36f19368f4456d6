//! Requests to groups (RFC 7252 §8): every member answers.

use std::net::{IpAddr, SocketAddr};

use coapace_net::uri::Host;
use coapace_net::{Call, Error, Response, Uri};

use super::device::{explain, tell};
use super::printer::Printer;
use crate::Failure;
use crate::arguments::{Arguments, Gathering, RequestArguments};
use crate::shown::{counted, remark};

/// Sends a request to a group, and prints the answers of its members as they come.
pub(super) async fn ask(
    arguments: &Arguments,
    request: &RequestArguments,
    call: Call,
    printer: &mut Printer<'_>,
) -> Result<(), Failure> {
    let text = &request.uri;
    let uri: Uri = text.parse().map_err(|bad| explain(&Error::Uri(bad), text))?;
    // This check comes before anything is sent: a group would answer although nobody could read it.
    if request.show.output.is_some() {
        return Err(Failure::Usage(format!(
            "{text}: -o saves one answer, and every member of a group sends one; use --json, which prints one answer a line"
        )));
    }
    let mut answers =
        called(call, &request.gathering).group().await.map_err(|error| explain_group(&error, text))?;
    let (mut members, mut successes) = (0, 0);
    while let Some((address, response)) = answers.next().await {
        members += 1;
        let member = member(&uri, address);
        // A member may send the first block only. The rest is asked for from that member alone (RFC 7959 §2.8).
        let whole = answers.whole(address, response).await;
        successes += usize::from(whole.as_ref().is_ok_and(Response::is_success));
        if let Err(error) = &whole {
            // One member of many failed.
            tell(&format!("coapace: {}", explain(error, &member.to_string())));
        }
        printer.member(&member, &whole)?;
    }
    match (members, successes) {
        // Silence is the wanted outcome here, and not a failure.
        (0, _) if request.gathering.no_response == Some(ALL) => {
            remark(arguments, "sent; no answer was asked for");
            Ok(())
        }
        (0, _) => Err(nobody(text)),
        (_, 0) => Err(Failure::Refused("no member answered with a success".to_owned())),
        // In a group some members may well refuse, so a single success is enough.
        _ => {
            remark(arguments, &format!("{} answered", counted(members, "member")));
            Ok(())
        }
    }
}

/// The value of No-Response that suppresses every answer (RFC 7967 §2.1).
const ALL: u8 = 26;

/// Adds the options for requests to groups to a call: the leisure of the members, and No-Response.
pub(super) fn called(mut call: Call, gathering: &Gathering) -> Call {
    if let Some(leisure) = gathering.leisure {
        call = call.leisure(leisure);
    }
    match gathering.no_response {
        // Members that do not know the option ignore it: it is elective (RFC 7967 §2).
        Some(classes) => call.option(coap_numbers::option::NO_RESPONSE, &[classes]),
        None => call,
    }
}

/// Explains why a request to a group could not be sent.
pub(super) fn explain_group(error: &Error, uri: &str) -> Failure {
    match error {
        Error::Unreachable(kind) => {
            Failure::Network(format!("{uri}: {kind}; name the interface of an IPv6 group, as in %25eth0"))
        }
        error => explain(error, uri),
    }
}

/// Returns the failure of a request to a group that no member answered.
pub(super) fn nobody(uri: &str) -> Failure {
    Failure::Network(format!(
        "{uri}: nobody answered; check the network, and name the interface of an IPv6 group, as in %25eth0"
    ))
}

/// Returns the URI of the same resource at a member of the group.
pub(super) fn member(uri: &Uri, address: SocketAddr) -> Uri {
    let zone = match (&uri.host, address) {
        (Host::Address(_, Some(zone)), _) => Some(zone.clone()),
        (_, SocketAddr::V6(address)) if address.scope_id() != 0 => Some(address.scope_id().to_string()),
        _ => None,
    };
    // Any other address means the same host at every interface.
    let local = matches!(address.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    let host = Host::Address(address.ip(), zone.filter(|_| local));
    Uri { host, port: address.port(), ..uri.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_a_group_is_asked_at_the_address_of_its_answer() {
        let at = |uri: &str, address: &str| {
            member(&uri.parse().expect("a URI"), address.parse().expect("an address")).to_string()
        };
        assert_eq!(at("coap://224.0.1.187/x?rt=a", "192.0.2.7:5683"), "coap://192.0.2.7/x?rt=a");
        assert_eq!(at("coap://[ff02::fd%25eth0]/x", "[fe80::7]:61616"), "coap://[fe80::7%25eth0]:61616/x");
        assert_eq!(at("coap://[ff02::fd]/x", "[fe80::7%4]:61616"), "coap://[fe80::7%254]:61616/x");
        assert_eq!(at("coap://[ff05::fd%25eth0]/x", "[2001:db8::7]:5683"), "coap://[2001:db8::7]/x");
    }
}
