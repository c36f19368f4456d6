//! The text format of Prometheus for metrics, version 0.0.4. `docs/metrics.md` has the same metrics in tables.

use std::fmt::{self, Display, Formatter};

use coapace_control::Controller;
use coapace_proto::{Code, Histogram};

use crate::counter::MetricsSection;
use crate::{Metrics, Profile};

/// A metric.
struct MetricFamily<'a> {
    section: MetricsSection,
    name: &'static str,
    /// The description of the metric, in Markdown.
    text: String,
    samples: Samples<'a>,
}

/// The values of a metric, each with its labels.
enum Samples<'a> {
    Counters(Vec<(String, u64)>),
    Gauges(Vec<(String, u64)>),
    Histograms(Vec<(&'static str, &'a Histogram)>),
}

impl Display for Metrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        families(self).iter().try_for_each(|family| family.fmt(f))
    }
}

/// Returns all metrics, sorted by section.
fn families(metrics: &Metrics) -> Vec<MetricFamily<'_>> {
    let mut families = measured(metrics);
    for (counter, value) in metrics.stats.counters() {
        let labels = counter.label.map_or(String::new(), |(name, value)| format!("{name}=\"{value}\""));
        let says = counter.label.map_or(String::new(), |(_, value)| format!("`{value}`:"));
        let text = format!("{says}{}", counter.text);
        // Several fields may be one metric with different labels. Their texts are joined.
        match families.iter_mut().find(|family| family.name == counter.metric) {
            Some(MetricFamily { text: before, samples: Samples::Counters(samples), .. }) => {
                before.push(' ');
                before.push_str(text.trim());
                match samples.iter_mut().find(|(other, _)| *other == labels) {
                    Some((_, sum)) => *sum += value,
                    None => samples.push((labels, value)),
                }
            }
            _ => families.push(MetricFamily {
                section: counter.section,
                name: counter.metric,
                text: text.trim().into(),
                samples: Samples::Counters(vec![(labels, value)]),
            }),
        }
    }
    // The sort is stable, so the metrics of a section keep the order of their declarations.
    families.sort_by_key(|family| family.section);
    families
}

/// Declares metrics that are not in [`Stats`](crate::Stats).
macro_rules! declared {
    ($($section:ident $name:literal = $samples:expr, $text:literal;)+) => {
        vec![$(MetricFamily {
            section: MetricsSection::$section, name: $name, text: String::from($text), samples: $samples,
        }),+]
    };
}

/// Returns the metrics that are not counted in [`Stats`](crate::Stats).
fn measured(metrics: &Metrics) -> Vec<MetricFamily<'_>> {
    use Samples::{Counters, Gauges, Histograms};
    let Metrics { requests, measures, profiles, exchanges, observers, peers, sessions, pending, .. } =
        metrics;
    // A metric without labels is one sample with an empty label.
    let one = |value: &u64| vec![(String::new(), *value)];
    let infos = profiles.iter().map(|profile| (info(profile), 1)).collect();
    let requests = requests.iter().map(|(method, code, count)| (answered(method, code), count)).collect();
    // Karn's problem: after a retransmission it is not known which copy was acknowledged.
    let (strong, weak) =
        (("sample=\"strong\"", &measures.rtt_strong), ("sample=\"weak\"", &measures.rtt_weak));
    declared! {
        CongestionControl "coap_cc_info" = Gauges(infos),
            "The mechanism as `--cc` takes it; NSTART (RFC 7252 §4.7); ACK_TIMEOUT (§4.8), or the initial RTO of a mechanism \
             that measures. There is one series for each setup in use, and its value is 1.";
        CongestionControl "coap_rtt_seconds" = Histograms(vec![strong, weak]),
            "Round-trip times of confirmable messages. `strong`: it is known which transmission was acknowledged. `weak`: \
             after a retransmission, from the first transmission on (draft-ietf-core-cocoa-03 §4.2).";
        CongestionControl "coap_rto_seconds" = Histograms(vec![("", &measures.rto)]),
            "RTO of the destination, before dither, at each first transmission of a confirmable message.";
        CongestionControl "coap_queue_wait_seconds" = Histograms(vec![("", &measures.queue_wait)]),
            "Time from the call that began an exchange to its first transmission: NSTART (RFC 7252 §4.7), the mechanism's \
             pace, PROBING_RATE.";
        CongestionControl "coap_exchanges" = Gauges(one(exchanges)),
            "Own exchanges under way or waiting.";
        Requests "coap_requests_total" = Counters(requests),
            "Requests over UDP and DTLS that were answered, each block and each registration as one. `method` is GET, POST, \
             PUT, DELETE, FETCH, PATCH or iPATCH, and empty for any other. `code` is the response's, like `2.05` (RFC 7252 \
             §12.1.2), and empty where none was sent: unwanted (RFC 7967), nothing for a group, or there was no room.";
        Requests "coap_handlers_waiting" = Gauges(one(pending)),
            "Handlers that wait for something now.";
        Datagrams "coap_received_bytes_total" = Counters(one(&measures.received_bytes)),
            "Bytes of the datagrams received.";
        Datagrams "coap_datagrams_sent_total" = Counters(one(&measures.sent)),
            "Datagrams sent, retransmissions and replies included.";
        Datagrams "coap_sent_bytes_total" = Counters(one(&measures.sent_bytes)),
            "Bytes of the datagrams sent.";
        Datagrams "coap_peers" = Gauges(one(peers)),
            "Peers of which the mechanism's state is kept.";
        Observe "coap_observers" = Gauges(one(observers)),
            "Observers registered.";
        Transports "coap_sessions" = Gauges(one(sessions)),
            "DTLS sessions, handshakes included.";
    }
}

impl MetricFamily<'_> {
    fn kind(&self) -> &'static str {
        match &self.samples {
            Samples::Counters(_) => "counter",
            Samples::Gauges(_) => "gauge",
            Samples::Histograms(_) => "histogram",
        }
    }
}

impl Display for MetricFamily<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, samples, .. } = self;
        // The backticks are for `docs/metrics.md`; HELP is plain text.
        writeln!(f, "# HELP {name} {}\n# TYPE {name} {}", self.text.replace('`', ""), self.kind())?;
        match samples {
            Samples::Counters(samples) | Samples::Gauges(samples) => {
                samples.iter().try_for_each(|(labels, value)| sample(f, name, "", labels, value))
            }
            Samples::Histograms(samples) => {
                samples.iter().try_for_each(|(labels, histogram)| distribution(f, name, labels, histogram))
            }
        }
    }
}

fn sample(f: &mut Formatter<'_>, name: &str, end: &str, labels: &str, value: impl Display) -> fmt::Result {
    match labels {
        "" => writeln!(f, "{name}{end} {value}"),
        _ => writeln!(f, "{name}{end}{{{labels}}} {value}"),
    }
}

fn distribution(f: &mut Formatter<'_>, name: &str, labels: &str, histogram: &Histogram) -> fmt::Result {
    // The bound of a bucket is one more label.
    let comma = if labels.is_empty() { "" } else { "," };
    for (bound, up_to) in histogram.cumulative() {
        sample(f, name, "_bucket", &format!("{labels}{comma}le=\"{}\"", seconds(bound)), up_to)?;
    }
    // The format requires a last bucket with all samples.
    sample(f, name, "_bucket", &format!("{labels}{comma}le=\"+Inf\""), histogram.count())?;
    sample(f, name, "_sum", labels, seconds(histogram.sum()))?;
    sample(f, name, "_count", labels, histogram.count())
}

fn seconds(duration: coapace_control::Duration) -> f64 {
    duration.as_micros() as f64 / 1e6
}

/// Returns the labels of requests. An unknown method, or a missing response, has an empty label.
fn answered(method: Option<Code>, code: Option<Code>) -> String {
    let method = method.and_then(Code::name).unwrap_or_default();
    let code = code.map(|code| code.dotted().to_string()).unwrap_or_default();
    format!("method=\"{method}\",code=\"{code}\"")
}

/// Returns the labels that describe a profile.
fn info(profile: &Profile) -> String {
    let mechanism = &profile.mechanism;
    let state = mechanism.state();
    let nstart = profile.config.nstart(&mechanism.limits(&state));
    // The state has no sample yet, so this is the initial RTO.
    let ack_timeout = seconds(mechanism.gauges(&state).rto);
    // Names and values of parameters have no characters that would have to be escaped.
    format!("mechanism=\"{mechanism}\",nstart=\"{nstart}\",ack_timeout_seconds=\"{ack_timeout}\"")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use coapace_control::Mechanism;

    use super::*;

    #[test]
    fn metrics_show_the_timeout_and_nstart_for_an_unknown_destination() {
        let labels = |text: &str| info(&Profile::from(text.parse::<Mechanism>().unwrap()));
        assert_eq!(
            labels("default:ack_timeout=500ms"),
            "mechanism=\"default:ack_timeout=500ms\",nstart=\"1\",ack_timeout_seconds=\"0.5\""
        );
        assert!(labels("rtt-coap").contains("nstart=\"1\""), "nothing is measured: {}", labels("rtt-coap"));
    }

    #[test]
    fn counters_with_the_same_metric_and_label_are_summed() {
        let mut metrics = Metrics::default();
        (metrics.stats.net.panics, metrics.stats.tcp.panics) = (2, 3);
        metrics.stats.endpoint.observers_rejected = 4;
        let text = metrics.to_string();
        assert!(text.contains("\ncoap_handler_panics_total 5\n"), "{text}");
        assert!(text.contains("\ncoap_observers_removed_total{reason=\"rejected\"} 4\n"), "{text}");
        assert_eq!(text.matches("# TYPE coap_observers_removed_total counter").count(), 1);
    }

    /// Returns the table of a section of `docs/metrics.md`.
    fn table(section: MetricsSection) -> String {
        let mut table = String::from("| metric | type | meaning |\n|---|---|---|\n");
        // The metrics that have no sample at first get one.
        let mut metrics = Metrics { profiles: vec![Profile::default()], ..Metrics::default() };
        metrics.requests.count(Code::GET, None);
        for family in families(&metrics).iter().filter(|family| family.section == section) {
            let labels = match &family.samples {
                Samples::Counters(samples) | Samples::Gauges(samples) => &samples[0].0,
                Samples::Histograms(samples) => samples[0].0,
            };
            let names: Vec<_> =
                labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0)).collect();
            let names = if names.is_empty() { String::new() } else { format!("{{{}}}", names.join(",")) };
            writeln!(table, "| `{}{names}` | {} | {} |", family.name, family.kind(), family.text).unwrap();
        }
        table
    }

    #[test]
    fn the_tables_of_docs_metrics_md_are_up_to_date() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let sections = [
            ("## Congestion control", MetricsSection::CongestionControl),
            ("## Requests", MetricsSection::Requests),
            ("## Datagrams", MetricsSection::Datagrams),
            ("## Observe (RFC 7641)", MetricsSection::Observe),
            ("## DTLS and TCP", MetricsSection::Transports),
        ];
        let updated = sections.iter().fold(page.clone(), |page, (title, section)| {
            let start = page.find(title).expect(title);
            let start = start + page[start..].find("| metric").expect(title);
            let end = start + page[start..].find("\n\n").expect(title) + 1;
            format!("{}{}{}", &page[..start], table(*section), &page[end..])
        });
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &updated).unwrap();
        } else {
            assert!(page == updated, "rewrite it: BLESS=1 cargo test -p coapace-net --lib metrics_md");
        }
    }
}
