//! The counters of a client or server, and counters of its requests by method and code.

use std::collections::BTreeMap;
use std::sync::Arc;

use coapace_proto::{Code, Counters};

use crate::counter::{Counter, CounterSet, counters};
use crate::datagram::hub::Hub;
use crate::lock::lock;

/// Counters of a client or server since it started, over all of its endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The counters of the endpoints.
    pub endpoint: Counters,
    /// The counters of events around the endpoints.
    pub net: NetCounters,
    /// The counters of DTLS sessions.
    pub dtls: DtlsCounters,
    /// The counters of a server's connections over TCP.
    pub tcp: TcpCounters,
}

counters! { extern Counters {
    /// Datagrams received.
    Datagrams: received => "coap_datagrams_received_total";
    /// Datagrams received that are not CoAP, have a format error (RFC 7252 §4.2, §4.3), or came to a group without
    /// being a non-confirmable request (§8.1).
    Datagrams: malformed => "coap_datagrams_malformed_total";
    /// Copies of messages seen before (RFC 7252 §4.5), answered like the first.
    Datagrams: duplicates => "coap_duplicates_total";
    /// Copies of requests that were not answered, because the previous answer may still have been on its way
    /// (`--sluice`).
    Datagrams: withheld => "coap_answers_withheld_total";
    /// Acknowledgements, resets and responses that belong to no outstanding exchange: often the sign of a spurious
    /// retransmission.
    Datagrams: late_replies => "coap_datagrams_late_total";
    /// Own exchanges whose first transmission departed.
    CongestionControl: started => "coap_exchanges_started_total";
    /// Retransmissions (RFC 7252 §4.2).
    CongestionControl: retransmissions => "coap_retransmissions_total";
    /// Own exchanges that were answered or acknowledged.
    CongestionControl: completed => "coap_exchanges_ended_total" { outcome = "completed" };
    /// Non-confirmable messages that were sent as confirmable: every eighth in a row (draft-ietf-core-cocoa-03 §5).
    CongestionControl: converted => "coap_converted_total";
    /// Own exchanges that got no answer after MAX_RETRANSMIT retransmissions (RFC 7252 §4.2).
    CongestionControl: given_up => "coap_exchanges_ended_total" { outcome = "given_up" };
    /// Own exchanges that were acknowledged or non-confirmable, and got no response in time.
    CongestionControl: timed_out => "coap_exchanges_ended_total" { outcome = "timed_out" };
    /// Own exchanges that a Reset rejected.
    CongestionControl: rejected => "coap_exchanges_ended_total" { outcome = "rejected" };
    /// Representations sent to observers, counted once for each observer.
    Observe: notifications => "coap_notifications_total";
    /// Representations that were not sent to an observer, because a newer one came before they could depart (RFC 7641
    /// §4.5.2).
    Observe: notifications_replaced => "coap_notifications_replaced_total";
    /// Observers that answered a notification with a Reset.
    Observe: observers_rejected => "coap_observers_removed_total" { reason = "rejected" };
    /// Observers that did not answer a confirmable notification.
    Observe: observers_given_up => "coap_observers_removed_total" { reason = "given_up" };
    /// Observers at unverified addresses that were removed for newer ones.
    Observe: observers_displaced => "coap_observers_removed_total" { reason = "displaced" },
        warn "unverified observers removed for newer ones";
    /// Peers that were forgotten for newer ones, together with the state of their congestion control.
    Datagrams: peers_evicted => "coap_peers_evicted_total", warn "peers forgotten for newer ones";
    /// Acknowledgements, resets and piggybacked responses that were dropped, because a table of the endpoint was full.
    Requests: replies_dropped => "coap_responses_dropped_total", warn "replies that no table had room for";
    /// Messages forgotten before EXCHANGE_LIFETIME, because the table of remembered messages was full: a copy of one
    /// would be executed again. A server refuses requests instead (`coap_requests_unremembered_total`), and forgets only
    /// idempotent ones (`coap_idempotent_forgotten_total`).
    Datagrams: forgotten_early => "coap_duplicates_forgotten_total", warn "messages forgotten before EXCHANGE_LIFETIME";
    /// Idempotent requests forgotten before EXCHANGE_LIFETIME, because the table of remembered messages was full. A
    /// copy of one is executed again, which does no harm (RFC 7252 §4.5).
    Datagrams: repeatable_forgotten => "coap_idempotent_forgotten_total";
} }

counters! {
    /// Counts of what happens between the network and an endpoint.
    pub struct NetCounters {
        /// Datagrams that are too long. A server accepts 2048 bytes, and a client over UDP any length. A request is answered
        /// 4.13 (over DTLS it is dropped). Others are dropped and not counted as received.
        Datagrams: truncated => "coap_datagrams_truncated_total", warn "datagrams longer than accepted";
        /// Datagrams that the system refused to send.
        Datagrams: send_errors => "coap_send_errors_total", warn "datagrams that the system refused to send";
        /// Requests answered 5.03 by the server itself: too many handlers were waiting, or it was closing.
        Requests: refused => "coap_requests_refused_total", warn "requests refused with 5.03";
        /// Requests that are not idempotent, and were not executed because the table of remembered messages was full.
        /// They are answered 4.01 with an Echo option, or 5.03 to a verified client.
        Requests: unremembered => "coap_requests_unremembered_total",
            warn "requests not carried out, because copies of them could not be recognised";
        /// Requests answered 4.29, because their client exceeded its allowed rate (`--max-rate`; RFC 8516).
        Requests: limited => "coap_requests_limited_total", warn "requests beyond the rate of their client";
        /// Handlers over UDP and DTLS that panicked. The request is answered 5.00.
        Requests: panics => "coap_handler_panics_total", warn "handlers that panicked";
        /// Separate responses that were dropped, because a table was full.
        Requests: responses_dropped => "coap_responses_dropped_total", warn "responses that no table had room for";
        /// Requests answered 4.01 with an Echo option, because the client must verify its address (RFC 9175 §2.4).
        Requests: challenged => "coap_challenges_total";
        /// Handlers that did not answer at once, but waited for something.
        Requests: deferred => "coap_handlers_deferred_total";
        /// Requests that came to a group (RFC 7252 §8).
        Requests: group_requests => "coap_group_requests_total";
        /// Responses to groups that were dropped, because too many others were still delayed (RFC 7252 §8.2).
        Requests: group_responses_dropped => "coap_group_responses_dropped_total",
            warn "responses to groups that no table had room for";
        /// Registrations that were accepted, renewals included (RFC 7641 §4.1).
        Observe: registered => "coap_observers_registered_total";
        /// Observers that asked to be removed, with Observe 1 (RFC 7641 §3.6).
        Observe: deregistered => "coap_observers_removed_total" { reason = "deregistered" };
        /// Registrations that were answered without the Observe option, because the table of observers was full (RFC
        /// 7641 §4.1).
        Observe: observers_refused => "coap_observers_refused_total", warn "registrations of observers refused";
    }
}

counters! {
    /// Counts of what happens to DTLS sessions.
    pub struct DtlsCounters {
        /// Cookies that a server requested from clients, before it stored anything for them (RFC 6347 §4.2.1).
        Transports: cookies_asked => "coap_dtls_cookies_total";
        /// Datagrams that belonged to no DTLS session and began none.
        Transports: strays => "coap_dtls_strays_total";
        /// Handshakes that ended with a session.
        Transports: handshakes => "coap_dtls_handshakes_total" { result = "completed" };
        /// Handshakes that failed, for any reason.
        Transports: handshakes_failed => "coap_dtls_handshakes_total" { result = "failed" };
        /// Failed handshakes that a server ended with an alert: no cipher suite in common, a wrong identity or key.
        Transports: alerts_sent => "coap_dtls_alerts_total";
        /// Sessions that the peer closed.
        Transports: closed_by_peer => "coap_dtls_sessions_ended_total" { reason = "closed_by_peer" };
        /// Sessions that were without a datagram for too long.
        Transports: idle => "coap_dtls_sessions_ended_total" { reason = "idle" };
        /// Sessions and handshakes that were dropped for newer ones.
        Transports: evicted => "coap_dtls_sessions_ended_total" { reason = "evicted" },
            warn "DTLS sessions whose place went to a newer one";
        /// Sessions of clients whose servers stopped answering.
        Transports: lost => "coap_dtls_sessions_ended_total" { reason = "lost" };
        /// Datagrams that were not sent because their DTLS session had ended.
        Transports: unsent => "coap_dtls_unsent_total";
    }
}

counters! {
    /// Counts of what happens to connections over TCP, with or without TLS and WebSockets.
    pub struct TcpCounters {
        /// Connections accepted (RFC 8323), over TCP, TLS and WebSockets.
        Transports: connections => "coap_tcp_connections_total";
        /// Connections whose handshake of TLS or WebSocket failed.
        Transports: handshakes_failed => "coap_tcp_handshakes_failed_total";
        /// Requests over TCP, of any method. They are not counted by method and code.
        Transports: requests => "coap_tcp_requests_total";
        /// Representations sent to observers over TCP.
        Transports: notifications => "coap_tcp_notifications_total";
        /// Connections whose client broke the protocol (RFC 8323 §5.6).
        Transports: aborted => "coap_tcp_connections_ended_total" { reason = "aborted" },
            warn "connections whose client broke the protocol";
        /// Connections that were silent for too long.
        Transports: idle => "coap_tcp_connections_ended_total" { reason = "idle" };
        /// Connections whose client read nothing for 30 s.
        Transports: stalled => "coap_tcp_connections_ended_total" { reason = "stalled" },
            warn "connections whose client reads nothing";
        /// Connections that were closed for newer ones.
        Transports: evicted => "coap_tcp_connections_ended_total" { reason = "evicted" },
            warn "connections whose place went to a newer one";
        /// Registrations over TCP that were accepted, renewals included (RFC 7641 §4.1).
        Transports: registered => "coap_tcp_observers_registered_total";
        /// Registrations over TCP that were answered without the Observe option, because no memory was left for an
        /// observer.
        Transports: observers_refused => "coap_tcp_observers_refused_total", warn "registrations of observers over TCP refused";
        /// Handlers over TCP that panicked; their request is also answered 5.00.
        Requests: panics => "coap_handler_panics_total", warn "handlers over TCP that panicked";
        /// Responses over TCP that were larger than the client accepts, and replaced with 5.00.
        Transports: too_large => "coap_tcp_responses_too_large_total", warn "responses larger than the client accepts";
    }
}

impl Stats {
    /// Returns the counts of endpoints.
    pub(crate) fn of<'a>(hubs: impl Iterator<Item = &'a Arc<Hub>>) -> Self {
        let mut sum = Self::default();
        for hub in hubs {
            // Not under the lock of the hub: a hub that sends takes the lock of its sessions while it holds its own.
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
    fn unknown_and_unanswered_requests_are_counted_separately_and_counters_merge() {
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
