//! The metrics of a server and its clients after known traffic.
#![allow(clippy::float_cmp)] // Counts, and sums of configured values.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::common::{serve, serve_with, until};
use coapace_net::{
    Client, Code, Config, Datagram, Direction, Interceptor, Metrics, Options, Profile, Rejection, Request,
    Resource, Response, Router, ServerConfig, Verify,
};
use tokio::time::sleep;

/// A number that is observed, a text that takes 60 ms, a large text, and a handler that panics.
fn router(number: &Resource) -> Router {
    let value = AtomicU64::new(0);
    let value = Arc::new(value);
    Router::new()
        .observe("/number", number, move |_| {
            let value = value.fetch_add(1, Relaxed);
            async move { Ok::<_, Rejection>(Response::content(value.to_string())) }
        })
        .get("/slow", |_| async {
            sleep(Duration::from_millis(60)).await;
            Ok::<_, Rejection>(Response::content("done"))
        })
        .get("/separate", |_| async {
            sleep(Duration::from_millis(300)).await;
            Ok::<_, Rejection>(Response::content("done"))
        })
        .get("/large", |_| async { Ok::<_, Rejection>(Response::content(vec![b'x'; 3_000])) })
        .post("/panic", |request: Request| async move {
            assert!(request.payload() != b"", "as asked");
            Ok::<_, Rejection>(Response::changed())
        })
}

/// The samples of an exposition by name and labels. A violation of the format is an error.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut families) = (BTreeMap::new(), BTreeMap::new());
    let mut helped = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a text behind the name");
            assert!(!help.is_empty() && name.starts_with("coap_"), "{line}");
            helped = name;
        } else if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a type behind the name");
            assert_eq!(name, helped, "HELP comes before TYPE");
            assert!(families.insert(name, kind).is_none(), "{name} twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').expect("a value behind the name");
            let name = sample.split('{').next().unwrap_or_default();
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let family = of_histogram.filter(|_| families.get(helped) == Some(&"histogram")).unwrap_or(name);
            assert_eq!(family, helped, "{line} is with its family");
            assert!(sample == name || sample.ends_with("\"}"), "{line}");
            assert!(samples.insert(sample.to_owned(), value.parse().expect(line)).is_none(), "{line} twice");
        }
    }
    for (name, _) in families.iter().filter(|&(_, &kind)| kind == "histogram") {
        let count = format!("{name}_count");
        for (sample, &count) in samples.range(count.clone()..).take_while(|(of, _)| of.starts_with(&count)) {
            let labels = sample.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
            let start = format!("{name}_bucket{{{labels}");
            let mut buckets: Vec<(f64, f64)> = samples
                .iter()
                .filter_map(|(bucket, &up_to)| {
                    let bound = bucket.strip_prefix(&start)?.split_once("le=\"")?.1.trim_end_matches("\"}");
                    Some((bound.replace("+Inf", "inf").parse().expect(bucket), up_to))
                })
                .collect();
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.len() == 20 && buckets.is_sorted_by_key(|&(_, up_to)| up_to), "{buckets:?}");
            assert_eq!(buckets[18].0, 120.0, "seconds");
            assert_eq!(buckets[19], (f64::INFINITY, count));
        }
    }
    samples
}

#[tokio::test]
async fn metrics_count_requests_by_method_and_code_including_unanswered_ones() {
    let server = serve(router(&Resource::new()));
    let client = Client::new();
    for _ in 0..3 {
        client.get(&server.uri("/number")).await.unwrap();
    }
    client.get(&server.uri("/nowhere")).await.unwrap();
    client.put(&server.uri("/number")).payload("x").await.unwrap();
    client.get(&server.uri("/slow")).await.unwrap();
    assert_eq!(client.post(&server.uri("/panic")).await.unwrap().code, Code::INTERNAL_SERVER_ERROR);
    // Two more blocks of the same response.
    assert_eq!(client.get(&server.uri("/large")).await.unwrap().payload.len(), 3_000);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(server.address).unwrap();
    // A method that nobody knows, twice the same; a request that wants no response of success.
    for request in [&[0x40, 31, 0, 1][..], &[0x40, 31, 0, 1]] {
        stranger.send(request).unwrap();
    }
    let mut silent = vec![0x50, Code::GET.0, 0, 2];
    Options::default().uri_path("number").no_response(2).write(&[], &mut silent);
    stranger.send(&silent).unwrap();
    until(|| server.handle.stats().endpoint.received == 13).await;

    let metrics = server.handle.metrics();
    let (get, content) = (Code::GET, Code::CONTENT);
    assert_eq!(metrics.requests.get(get, content), 3 + 1 + 3);
    let samples = parsed(&metrics.to_string());
    let count =
        |method, code| samples.get(&format!("coap_requests_total{{method=\"{method}\",code=\"{code}\"}}"));
    let expected = [
        ("GET", "2.05", 7.0),
        ("GET", "4.04", 1.0),
        ("GET", "", 1.0),
        ("PUT", "4.05", 1.0),
        ("POST", "5.00", 1.0),
    ];
    for (method, code, times) in expected {
        assert_eq!(count(method, code), Some(&times), "{method} {code}");
    }
    let of = |name: &str| samples[name];
    let all: f64 =
        samples.iter().filter(|(name, _)| name.starts_with("coap_requests_total")).map(|it| it.1).sum();
    assert_eq!(all, 12.0, "and one of an unknown method: {samples:?}");
    assert_eq!(of("coap_datagrams_received_total"), 12.0 + 1.0);
    assert_eq!((of("coap_duplicates_total"), of("coap_handler_panics_total")), (1.0, 1.0));
    assert_eq!((of("coap_handlers_deferred_total"), of("coap_handlers_waiting")), (1.0, 0.0));
    let sent = client.metrics().measures;
    let strange = 4.0 + 4.0 + silent.len() as f64;
    assert_eq!(of("coap_received_bytes_total"), sent.sent_bytes as f64 + strange);
}

/// Loses the next datagram that arrives, whenever the test sets the flag.
#[derive(Debug, Default)]
struct Losing(AtomicBool);

impl Interceptor for Losing {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        datagram.direction == Direction::Sent || !self.0.swap(false, Relaxed)
    }
}

#[tokio::test]
async fn metrics_count_retransmissions_and_weak_samples_of_lost_notifications() {
    let (number, losing) = (Resource::new(), Arc::new(Losing::default()));
    let profile = Profile::from("default:ack_timeout=100ms".parse::<coapace_net::Mechanism>().unwrap());
    let config = ServerConfig { cores: 1, profile, ..ServerConfig::default() };
    let server = serve_with(router(&number), config);
    let client = Client::builder().interceptor(losing.clone()).build();
    let mut observation = client.observe(&server.uri("/number")).await.unwrap();
    let completed = || server.handle.stats().endpoint.completed;
    for nth in 0..3 {
        losing.0.store(nth == 1, Relaxed);
        number.changed();
        observation.next().await.unwrap().unwrap();
        until(|| completed() == nth + 1).await;
    }
    assert_eq!(server.handle.metrics().observers, 1);
    observation.end().await.unwrap();
    client.get(&server.uri("/separate")).await.unwrap();
    until(|| completed() == 4).await;

    let metrics = server.handle.metrics();
    let samples = parsed(&metrics.to_string());
    let of = |name: &str| samples[name];
    assert_eq!((of("coap_notifications_total"), of("coap_notifications_replaced_total")), (3.0, 0.0));
    assert_eq!((of("coap_exchanges_started_total"), of("coap_retransmissions_total")), (4.0, 1.0));
    assert_eq!(of("coap_exchanges_ended_total{outcome=\"completed\"}"), 4.0);
    assert_eq!(of("coap_rtt_seconds_count{sample=\"strong\"}"), 3.0, "of the separate response, too");
    assert_eq!(of("coap_rtt_seconds_count{sample=\"weak\"}"), 1.0);
    let weak = of("coap_rtt_seconds_sum{sample=\"weak\"}");
    assert!((0.1..0.5).contains(&weak), "{weak} s from the first transmission");
    assert_eq!(of("coap_rtt_seconds_bucket{sample=\"weak\",le=\"0.1\"}"), 0.0);
    assert_eq!((of("coap_rto_seconds_count"), of("coap_rto_seconds_sum")), (4.0, 0.4));
    assert_eq!(
        (of("coap_rto_seconds_bucket{le=\"0.05\"}"), of("coap_rto_seconds_bucket{le=\"0.1\"}")),
        (0.0, 4.0)
    );
    assert_eq!(
        (of("coap_observers"), of("coap_exchanges"), of("coap_queue_wait_seconds_count")),
        (0.0, 0.0, 4.0)
    );
    assert_eq!(of("coap_observers_removed_total{reason=\"deregistered\"}"), 1.0);
    assert_eq!(of("coap_observers_registered_total"), 1.0);
    let info =
        "coap_cc_info{mechanism=\"default:ack_timeout=100ms\",nstart=\"1\",ack_timeout_seconds=\"0.1\"}";
    assert_eq!(samples.get(info), Some(&1.0), "{samples:?}");
}

#[tokio::test]
async fn metrics_of_a_client_have_round_trip_times_and_waits_for_nstart() {
    let server = serve(router(&Resource::new()));
    let client = Client::new();
    let uri = server.uri("/slow");
    let calls = [(); 3].map(|()| tokio::spawn(client.get(&uri).into_future()));
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let Metrics { measures, stats, profiles, .. } = client.metrics();
    assert_eq!((measures.rtt_strong.count(), measures.rtt_weak.count()), (3, 0));
    let seconds = |histogram: &coapace_net::Histogram| histogram.sum().as_micros() as f64 / 1e6;
    let (rtt, wait) = (seconds(&measures.rtt_strong), seconds(&measures.queue_wait));
    assert!((0.18..1.0).contains(&rtt), "three times 60 ms: {rtt} s");
    assert!((0.17..1.0).contains(&wait), "none, 60 ms and twice that: {wait} s");
    assert_eq!((stats.endpoint.started, profiles), (3, vec![Profile::default()]));
}

#[tokio::test]
async fn a_client_challenged_for_echo_is_counted_and_answered_4_01() {
    let config = ServerConfig { cores: 1, verify: Verify::Everybody, ..ServerConfig::default() };
    let server = serve_with(router(&Resource::new()), config);
    assert_eq!(Client::new().get(&server.uri("/large")).await.unwrap().payload.len(), 3_000);
    let metrics = server.handle.metrics();
    assert_eq!(metrics.stats.net.challenged, 1);
    assert_eq!(metrics.requests.get(Code::GET, Code::UNAUTHORIZED), 1);
}

#[tokio::test]
async fn merged_metrics_of_two_servers_look_like_one_server() {
    let impatient =
        Profile { config: Config { nstart: Some(2), ..Profile::default().config }, ..Profile::default() };
    let other = ServerConfig { cores: 2, profile: impatient, ..ServerConfig::default() };
    let servers = [serve(router(&Resource::new())), serve_with(router(&Resource::new()), other)];
    for server in &servers {
        Client::new().get(&server.uri("/separate")).await.unwrap();
        until(|| server.handle.stats().endpoint.completed == 1).await;
    }
    let mut both = Metrics::default();
    for server in &servers {
        both.merge(&server.handle.metrics());
    }
    let samples = parsed(&both.to_string());
    assert_eq!(samples["coap_requests_total{method=\"GET\",code=\"2.05\"}"], 2.0);
    assert_eq!(
        (samples["coap_rtt_seconds_count{sample=\"strong\"}"], samples["coap_exchanges_started_total"]),
        (2.0, 2.0)
    );
    assert_eq!(samples.keys().filter(|name| name.starts_with("coap_cc_info")).count(), 2);
    assert!(samples["coap_peers"] >= 2.0);
}
