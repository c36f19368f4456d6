//! Metrics as Prometheus reads them: its text format, version 0.0.4.

use std::fmt::{self, Display, Formatter};

use coapace_control::Controller;
use coapace_proto::{Code, Histogram};

use crate::{Metrics, Profile};

impl Display for Metrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = &mut Exposition(f);
        let infos: Vec<_> = self.profiles.iter().map(info).collect();
        let infos: Vec<_> = infos.iter().map(|labels| (labels.as_str(), 1)).collect();
        text.gauges("coap_cc_info", "The congestion control of endpoints.", &infos)?;
        self.requests(text)?;
        self.datagrams(text)?;
        self.exchanges(text)?;
        self.observers(text)?;
        self.transports(text)
    }
}

impl Metrics {
    fn requests(&self, text: &mut Exposition<'_, '_>) -> fmt::Result {
        let net = &self.stats.net;
        let counts: Vec<_> =
            self.requests.iter().map(|(method, code, count)| (answered(method, code), count)).collect();
        let counts: Vec<_> = counts.iter().map(|(labels, count)| (labels.as_str(), *count)).collect();
        text.counters("coap_requests_total", "Requests by method and code of the response.", &counts)?;
        text.counter("coap_requests_refused_total", "Requests answered 5.03 by the server.", net.refused)?;
        text.counter("coap_challenges_total", "Requests answered 4.01 with an Echo option.", net.challenged)?;
        text.counter("coap_handler_panics_total", "Handlers that panicked.", net.panics)?;
        text.counter("coap_handlers_deferred_total", "Handlers that had to wait.", net.deferred)?;
        text.gauge("coap_handlers_waiting", "Handlers that wait for something.", self.pending)?;
        text.counter("coap_group_requests_total", "Requests that came to a group.", net.group_requests)?;
        text.counter(
            "coap_group_responses_dropped_total",
            "Responses to groups without room to wait.",
            net.group_responses_dropped,
        )?;
        let dropped = net.responses_dropped + self.stats.endpoint.replies_dropped;
        text.counter(
            "coap_responses_dropped_total",
            "Responses, acknowledgements and resets without room.",
            dropped,
        )
    }

    fn datagrams(&self, text: &mut Exposition<'_, '_>) -> fmt::Result {
        let (endpoint, net, measures) = (&self.stats.endpoint, &self.stats.net, &self.measures);
        text.counter("coap_datagrams_received_total", "Datagrams received.", endpoint.received)?;
        text.counter("coap_received_bytes_total", "Bytes of CoAP received.", measures.received_bytes)?;
        text.counter("coap_datagrams_sent_total", "Datagrams sent.", measures.sent)?;
        text.counter("coap_sent_bytes_total", "Bytes of CoAP sent.", measures.sent_bytes)?;
        text.counter("coap_datagrams_malformed_total", "Datagrams that are no CoAP.", endpoint.malformed)?;
        text.counter("coap_datagrams_truncated_total", "Datagrams longer than is taken.", net.truncated)?;
        text.counter(
            "coap_datagrams_late_total",
            "Answers to no exchange under way.",
            endpoint.late_replies,
        )?;
        text.counter("coap_send_errors_total", "Datagrams that the system would not send.", net.send_errors)?;
        text.counter("coap_duplicates_total", "Copies of messages seen before.", endpoint.duplicates)?;
        let early = endpoint.forgotten_early;
        text.counter("coap_duplicates_forgotten_total", "Messages forgotten before their lifetime.", early)?;
        text.gauge("coap_peers", "Peers remembered.", self.peers)?;
        text.counter("coap_peers_evicted_total", "Peers that made room for others.", endpoint.peers_evicted)
    }

    fn exchanges(&self, text: &mut Exposition<'_, '_>) -> fmt::Result {
        let (endpoint, measures) = (&self.stats.endpoint, &self.measures);
        text.gauge("coap_exchanges", "Own exchanges under way or waiting.", self.exchanges)?;
        text.counter("coap_exchanges_started_total", "Own exchanges that departed.", endpoint.started)?;
        text.counters(
            "coap_exchanges_ended_total",
            "Own exchanges that ended, and how.",
            &[
                ("outcome=\"completed\"", endpoint.completed),
                ("outcome=\"given_up\"", endpoint.given_up),
                ("outcome=\"rejected\"", endpoint.rejected),
                ("outcome=\"timed_out\"", endpoint.timed_out),
            ],
        )?;
        text.counter("coap_retransmissions_total", "Retransmissions.", endpoint.retransmissions)?;
        text.counter("coap_converted_total", "Messages made confirmable, one in eight.", endpoint.converted)?;
        text.histograms(
            "coap_rtt_seconds",
            "Round-trip times: strong samples, and weak ones after a retransmission.",
            &[("sample=\"strong\"", &measures.rtt_strong), ("sample=\"weak\"", &measures.rtt_weak)],
        )?;
        text.histograms(
            "coap_rto_seconds",
            "RTO before dither, at each first transmission of a confirmable message.",
            &[("", &measures.rto)],
        )?;
        text.histograms(
            "coap_queue_wait_seconds",
            "Waits for NSTART, pace or PROBING_RATE until the first transmission.",
            &[("", &measures.queue_wait)],
        )
    }

    fn observers(&self, text: &mut Exposition<'_, '_>) -> fmt::Result {
        let (endpoint, net) = (&self.stats.endpoint, &self.stats.net);
        text.gauge("coap_observers", "Observers registered.", self.observers)?;
        text.counters(
            "coap_observers_removed_total",
            "Observers that left, and why.",
            &[
                ("reason=\"deregistered\"", net.deregistered),
                ("reason=\"displaced\"", endpoint.observers_displaced),
                ("reason=\"given_up\"", endpoint.observers_given_up),
                ("reason=\"rejected\"", endpoint.observers_rejected),
            ],
        )?;
        let refused = net.observers_refused;
        text.counter("coap_observers_refused_total", "Registrations that there was no room for.", refused)?;
        let (told, replaced) = (endpoint.notifications, endpoint.notifications_replaced);
        text.counter("coap_notifications_total", "Representations sent to observers.", told)?;
        text.counter("coap_notifications_replaced_total", "Representations replaced by newer ones.", replaced)
    }

    fn transports(&self, text: &mut Exposition<'_, '_>) -> fmt::Result {
        text.gauge("coap_sessions", "DTLS sessions, handshakes included.", self.sessions)?;
        #[cfg(feature = "dtls")]
        {
            let dtls = &self.stats.dtls;
            text.counter(
                "coap_dtls_cookies_total",
                "Cookies that sources were asked for.",
                dtls.cookies_asked,
            )?;
            text.counters(
                "coap_dtls_handshakes_total",
                "DTLS handshakes that ended.",
                &[("result=\"completed\"", dtls.handshakes), ("result=\"failed\"", dtls.handshakes_failed)],
            )?;
            text.counters(
                "coap_dtls_sessions_ended_total",
                "DTLS sessions that ended, and why.",
                &[
                    ("reason=\"closed_by_peer\"", dtls.closed_by_peer),
                    ("reason=\"evicted\"", dtls.evicted),
                    ("reason=\"idle\"", dtls.idle),
                ],
            )?;
            text.counter("coap_dtls_strays_total", "Datagrams of no DTLS session.", dtls.strays)?;
        }
        #[cfg(feature = "tcp")]
        {
            let tcp = &self.stats.tcp;
            text.counter("coap_tcp_connections_total", "Connections over TCP accepted.", tcp.connections)?;
            text.counter("coap_tcp_requests_total", "Requests over TCP.", tcp.requests)?;
            text.counters(
                "coap_tcp_connections_ended_total",
                "Connections over TCP that the server ended, and why.",
                &[
                    ("reason=\"aborted\"", tcp.aborted),
                    ("reason=\"evicted\"", tcp.evicted),
                    ("reason=\"idle\"", tcp.idle),
                    ("reason=\"stalled\"", tcp.stalled),
                ],
            )?;
            text.counter(
                "coap_tcp_handshakes_failed_total",
                "Connections over TCP without TLS or WebSocket.",
                tcp.handshakes_failed,
            )?;
            text.counter(
                "coap_tcp_notifications_total",
                "Representations sent to observers over TCP.",
                tcp.notifications,
            )?;
            text.counter(
                "coap_tcp_observers_refused_total",
                "Registrations over TCP that there was no room for.",
                tcp.observers_refused,
            )?;
        }
        Ok(())
    }
}

/// Text of metrics.
struct Exposition<'a, 'f>(&'a mut Formatter<'f>);

impl Exposition<'_, '_> {
    fn family(&mut self, name: &str, kind: &str, help: &str) -> fmt::Result {
        write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) -> fmt::Result {
        match labels {
            "" => writeln!(self.0, "{name} {value}"),
            _ => writeln!(self.0, "{name}{{{labels}}} {value}"),
        }
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, &[("", value)])
    }

    fn counters(&mut self, name: &str, help: &str, samples: &[(&str, u64)]) -> fmt::Result {
        self.family(name, "counter", help)?;
        samples.iter().try_for_each(|(labels, value)| self.sample(name, labels, value))
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.gauges(name, help, &[("", value)])
    }

    fn gauges(&mut self, name: &str, help: &str, samples: &[(&str, u64)]) -> fmt::Result {
        self.family(name, "gauge", help)?;
        samples.iter().try_for_each(|(labels, value)| self.sample(name, labels, value))
    }

    fn histograms(&mut self, name: &str, help: &str, samples: &[(&str, &Histogram)]) -> fmt::Result {
        self.family(name, "histogram", help)?;
        let (bucket, sum, count) = (format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count"));
        for (labels, histogram) in samples {
            let comma = if labels.is_empty() { "" } else { "," };
            for (bound, up_to) in histogram.cumulative() {
                let le = format!("{labels}{comma}le=\"{}\"", seconds(bound));
                self.sample(&bucket, &le, up_to)?;
            }
            self.sample(&bucket, &format!("{labels}{comma}le=\"+Inf\""), histogram.count())?;
            self.sample(&sum, labels, seconds(histogram.sum()))?;
            self.sample(&count, labels, histogram.count())?;
        }
        Ok(())
    }
}

fn seconds(duration: coapace_control::Duration) -> f64 {
    duration.as_micros() as f64 / 1e6
}

/// The labels of requests. What is no known method, and what got no response, has an empty label.
fn answered(method: Option<Code>, code: Option<Code>) -> String {
    let method = method.and_then(Code::name).unwrap_or_default();
    let code = code.map(|code| code.dotted().to_string()).unwrap_or_default();
    format!("method=\"{method}\",code=\"{code}\"")
}

/// The labels of a profile.
fn info(profile: &Profile) -> String {
    let mechanism = &profile.mechanism;
    let state = mechanism.state();
    let nstart = profile.config.nstart(&mechanism.limits(&state));
    let ack_timeout = seconds(mechanism.gauges(&state).rto);
    // Names and values of parameters have no characters that would have to be escaped.
    format!("mechanism=\"{mechanism}\",nstart=\"{nstart}\",ack_timeout_seconds=\"{ack_timeout}\"")
}

#[cfg(test)]
mod tests {
    use coapace_control::Mechanism;

    use super::*;

    #[test]
    fn the_timeout_and_nstart_are_those_of_the_mechanism_towards_an_unknown_destination() {
        let labels = |text: &str| info(&Profile::from(text.parse::<Mechanism>().unwrap()));
        assert_eq!(
            labels("default:ack_timeout=500ms"),
            "mechanism=\"default:ack_timeout=500ms\",nstart=\"1\",ack_timeout_seconds=\"0.5\""
        );
        assert!(labels("rtt-coap").contains("nstart=\"1\""), "nothing is measured: {}", labels("rtt-coap"));
    }
}
