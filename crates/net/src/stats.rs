//! The counts of a client or server, and the counts of its requests by method and code.

use std::collections::BTreeMap;
use std::sync::Arc;

use coapace_proto::{Code, Counters};

use crate::counter::{Counter, CounterSet, counters};
use crate::datagram::hub::Hub;
use crate::lock::lock;

/// Counts of a client or server since it began, over all of its endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The counts of the endpoints.
    pub endpoint: Counters,
    /// The counts of events around the endpoints.
    pub net: NetCounters,
    /// The counts of DTLS sessions.
    pub dtls: DtlsCounters,
    /// The counts of a server's connections over TCP.
    pub tcp: TcpCounters,
}

counters! { extern Counters {
    /// Datagrams received.
    Datagrams: received => "coap_datagrams_received_total";
    /// Datagrams received that are no CoAP, have a format error (RFC 7252 §4.2, §4.3), or came to a group and are no
    /// non-confirmable request (§8.1).
    Datagrams: malformed => "coap_datagrams_malformed_total";
    /// Copies of messages seen before (RFC 7252 §4.5), answered like the first.
    Datagrams: duplicates => "coap_duplicates_total";
    /// Copies of requests that got no answer because the last one may still have been under way (`--sluice`).
    Datagrams: withheld => "coap_answers_withheld_total";
    /// Acknowledgements, resets and responses to no exchange under way: often the trace of a needless retransmission.
    Datagrams: late_replies => "coap_datagrams_late_total";
    /// Own exchanges whose first transmission departed.
    CongestionControl: started => "coap_exchanges_started_total";
    /// Retransmissions (RFC 7252 §4.2).
    CongestionControl: retransmissions => "coap_retransmissions_total";
    /// Own exchanges that were answered or acknowledged.
    CongestionControl: completed => "coap_exchanges_ended_total" { outcome = "completed" };
    /// Messages that left as confirmable though they need not be: the eighth in a row (draft-ietf-core-cocoa-03 §5).
    CongestionControl: converted => "coap_converted_total";
    /// Own exchanges that nothing answered after MAX_RETRANSMIT (RFC 7252 §4.2).
    CongestionControl: given_up => "coap_exchanges_ended_total" { outcome = "given_up" };
    /// Own exchanges that were acknowledged, and that no response followed.
    CongestionControl: timed_out => "coap_exchanges_ended_total" { outcome = "timed_out" };
    /// Own exchanges that a Reset rejected.
    CongestionControl: rejected => "coap_exchanges_ended_total" { outcome = "rejected" };
    /// Representations sent to observers, each once for each observer.
    Observe: notifications => "coap_notifications_total";
    /// Representations that an observer was not sent, because a newer one came before they could depart (RFC 7641 §4.5.2).
    Observe: notifications_replaced => "coap_notifications_replaced_total";
    /// Observers that answered a notification with a Reset.
    Observe: observers_rejected => "coap_observers_removed_total" { reason = "rejected" };
    /// Observers that did not answer a confirmable notification.
    Observe: observers_given_up => "coap_observers_removed_total" { reason = "given_up" };
    /// Observers of unverified addresses that made room for others.
    Observe: observers_displaced => "coap_observers_removed_total" { reason = "displaced" },
        warn "unverified observers ended for others";
    /// Peers that made room for others, with what was learnt of them.
    Datagrams: peers_evicted => "coap_peers_evicted_total", warn "peers forgotten for others";
    /// Responses, acknowledgements and resets that found a table of the endpoint full.
    Requests: replies_dropped => "coap_responses_dropped_total", warn "replies without room";
    /// Messages forgotten before EXCHANGE_LIFETIME because there was no room for more: a copy of one would be carried out
    /// again. A server forgets no request so, see `coap_requests_unremembered_total`.
    Datagrams: forgotten_early => "coap_duplicates_forgotten_total", warn "messages forgotten before their lifetime";
    /// Idempotent requests forgotten before EXCHANGE_LIFETIME because there was no room for more. A copy of one is carried
    /// out again, which does no harm (RFC 7252 §4.5).
    Datagrams: repeatable_forgotten => "coap_idempotent_forgotten_total";
} }

counters! {
    /// Counts of what happens between the network and an endpoint.
    pub struct NetCounters {
        /// Datagrams longer than is taken: 2048 bytes by a server, any length by a client over UDP. Requests are answered 4.13, others
        /// are dropped and not counted as received.
        Datagrams: truncated => "coap_datagrams_truncated_total", warn "datagrams longer than is taken";
        /// Datagrams that the system would not send.
        Datagrams: send_errors => "coap_send_errors_total", warn "datagrams that the system would not send";
        /// Requests answered 5.03 by the server itself: too many handlers were waiting, or it was closing.
        Requests: refused => "coap_requests_refused_total", warn "requests refused with 5.03";
        /// Requests that are not idempotent and that there was no room to remember: not carried out, and answered 4.01 with an
        /// Echo option, or 5.03 to a verified client.
        Requests: unremembered => "coap_requests_unremembered_total",
            warn "requests not carried out, because copies of them could not be recognised";
        /// Requests answered 4.29: their client has asked faster than it may (`--max-rate`; RFC 8516).
        Requests: limited => "coap_requests_limited_total", warn "requests beyond the rate of their client";
        /// Handlers over UDP and DTLS that panicked, answered 5.00.
        Requests: panics => "coap_handler_panics_total", warn "handlers that panicked";
        /// Separate responses that found a table of the endpoint full.
        Requests: responses_dropped => "coap_responses_dropped_total", warn "responses without room";
        /// Requests answered 4.01 with an Echo option: the client has to show that its address is its own (RFC 9175 §2.4).
        Requests: challenged => "coap_challenges_total";
        /// Handlers that had to wait.
        Requests: deferred => "coap_handlers_deferred_total";
        /// Requests that came to a group (RFC 7252 §8).
        Requests: group_requests => "coap_group_requests_total";
        /// Responses to groups that were dropped, because too many waited for their moment (RFC 7252 §8.2).
        Requests: group_responses_dropped => "coap_group_responses_dropped_total",
            warn "responses to groups without room";
        /// Registrations that were accepted, renewals included (RFC 7641 §4.1).
        Observe: registered => "coap_observers_registered_total";
        /// Observers that asked to be removed, with Observe 1 (RFC 7641 §3.6).
        Observe: deregistered => "coap_observers_removed_total" { reason = "deregistered" };
        /// Registrations that found no room, answered without the Observe option (RFC 7641 §4.1).
        Observe: observers_refused => "coap_observers_refused_total", warn "observers refused";
    }
}

counters! {
    /// Counts of what happens to DTLS sessions.
    pub struct DtlsCounters {
        /// Cookies that a server asked sources for, before it kept anything of them (RFC 6347 §4.2.1).
        Transports: cookies_asked => "coap_dtls_cookies_total";
        /// Datagrams that belonged to no DTLS session and began none.
        Transports: strays => "coap_dtls_strays_total";
        /// Handshakes that ended with a session.
        Transports: handshakes => "coap_dtls_handshakes_total" { result = "completed" };
        /// Handshakes that failed, for whatever reason.
        Transports: handshakes_failed => "coap_dtls_handshakes_total" { result = "failed" };
        /// Failed handshakes that a server ended with an alert: no cipher suite in common, a wrong identity or key.
        Transports: alerts_sent => "coap_dtls_alerts_total";
        /// Sessions that the peer closed.
        Transports: closed_by_peer => "coap_dtls_sessions_ended_total" { reason = "closed_by_peer" };
        /// Sessions that were without a datagram for too long.
        Transports: idle => "coap_dtls_sessions_ended_total" { reason = "idle" };
        /// Sessions and handshakes that made room for others.
        Transports: evicted => "coap_dtls_sessions_ended_total" { reason = "evicted" },
            warn "DTLS sessions ended for others";
        /// Sessions of clients whose servers answered nothing any more.
        Transports: lost => "coap_dtls_sessions_ended_total" { reason = "lost" };
        /// Datagrams that were not sent because their DTLS session had ended.
        Transports: unsent => "coap_dtls_unsent_total";
    }
}

counters! {
    /// Counts of what happens to connections over TCP, with or without TLS and WebSockets.
    pub struct TcpCounters {
        /// Connections accepted (RFC 8323), those of TLS and WebSockets too.
        Transports: connections => "coap_tcp_connections_total";
        /// Connections whose handshake of TLS or WebSocket failed.
        Transports: handshakes_failed => "coap_tcp_handshakes_failed_total";
        /// Requests over TCP, by neither method nor code.
        Transports: requests => "coap_tcp_requests_total";
        /// Representations sent to observers over TCP.
        Transports: notifications => "coap_tcp_notifications_total";
        /// Connections whose client broke the protocol (RFC 8323 §5.6).
        Transports: aborted => "coap_tcp_connections_ended_total" { reason = "aborted" },
            warn "connections against the protocol";
        /// Connections that were silent for too long.
        Transports: idle => "coap_tcp_connections_ended_total" { reason = "idle" };
        /// Connections whose client took nothing for 30 s.
        Transports: stalled => "coap_tcp_connections_ended_total" { reason = "stalled" },
            warn "connections of clients that take nothing";
        /// Connections that made room for others.
        Transports: evicted => "coap_tcp_connections_ended_total" { reason = "evicted" },
            warn "connections ended for others";
        /// Registrations over TCP that were accepted, renewals included (RFC 7641 §4.1).
        Transports: registered => "coap_tcp_observers_registered_total";
        /// Registrations over TCP that found no room.
        Transports: observers_refused => "coap_tcp_observers_refused_total", warn "observers over TCP refused";
        /// Handlers over TCP that panicked, answered 5.00.
        Requests: panics => "coap_handler_panics_total", warn "handlers over TCP that panicked";
        /// Responses over TCP that were larger than the client takes, answered 5.00.
        Transports: too_large => "coap_tcp_responses_too_large_total", warn "responses larger than the client takes";
    }
}

impl Stats {
    /// Returns the counts of endpoints.
    pub(crate) fn of<'a>(hubs: impl Iterator<Item = &'a Arc<Hub>>) -> Self {
        let mut sum = Self::default();
        for hub in hubs {
            let counters = hub.sessions.as_ref().map(|sessions| lock(sessions).counters());
            sum.dtls.add(&counters.unwrap_or_default());
            let state = hub.lock();
            sum.endpoint.add(&state.endpoint.counters());
            sum.net.add(&state.counters);
        }
        sum
    }

    /// Adds the counts of another client or server.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.endpoint.add(&other.endpoint);
        self.net.add(&other.net);
        self.dtls.add(&other.dtls);
        self.tcp.add(&other.tcp);
    }

    /// Returns every counter with its value.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&'static Counter, u64)> {
        let endpoint = self.endpoint.counters().chain(self.net.counters());
        endpoint.chain(self.dtls.counters()).chain(self.tcp.counters())
    }
}

/// The method of a request, if it is known, and the code of its response, if one was sent.
type Codes = (Option<Code>, Option<Code>);

/// Counts of the requests to a server, by method and code of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests(BTreeMap<Codes, u64>);

impl Requests {
    /// Counts a request, with the code of its response if one was sent.
    pub(crate) fn count(&mut self, method: Code, response: Option<Code>) {
        // Unknown methods are counted together, so that clients cannot fill the map.
        let known = (Code::GET..=Code::IPATCH).contains(&method).then_some(method);
        *self.0.entry((known, response)).or_default() += 1;
    }

    /// Adds the counts of another server.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(&codes, count)| *self.0.entry(codes).or_default() += count);
    }

    /// Returns each counted method and code, with its count. The method is `None` if it is unknown, and the code if no
    /// response was sent.
    pub fn iter(&self) -> impl Iterator<Item = (Option<Code>, Option<Code>, u64)> {
        self.0.iter().map(|(&(method, code), &count)| (method, code, count))
    }

    /// Returns the number of requests with this method and this code of the response.
    pub fn get(&self, method: Code, response: Code) -> u64 {
        self.0.get(&(Some(method), Some(response))).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_or_unanswered_is_counted_apart_and_two_counts_add_up() {
        let mut requests = Requests::default();
        requests.count(Code::IPATCH, Some(Code(0xff)));
        requests.count(Code::IPATCH, None);
        requests.count(Code(8), Some(Code::METHOD_NOT_ALLOWED));
        requests.count(Code(31), Some(Code::METHOD_NOT_ALLOWED));
        let mut both = Requests::default();
        both.merge(&requests);
        both.merge(&requests);
        let counted: Vec<_> = both.iter().collect();
        let (ipatch, last) = (Some(Code::IPATCH), Some(Code(0xff)));
        assert_eq!(
            counted,
            [(None, Some(Code::METHOD_NOT_ALLOWED), 4), (ipatch, None, 2), (ipatch, last, 2)]
        );
        assert_eq!((both.get(Code::IPATCH, Code(0xff)), both.get(Code::GET, Code::CONTENT)), (2, 0));
    }
}
