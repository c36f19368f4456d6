//! The metrics of a server or relay over HTTP, for Prometheus.

use crate::http::{HttpResponse, HttpServer, Site};
use crate::{Failure, process};

/// A source of metrics.
pub(crate) trait MetricsSource: Send + Sync + 'static {
    /// Returns the metrics in the text format of Prometheus.
    fn exposition(&self) -> String;

    /// Returns whether the server refuses requests because it is stopping.
    fn is_closing(&self) -> bool;
}

/// The listening socket of the metrics endpoint.
#[derive(Debug)]
pub(crate) struct Exporter(HttpServer);

impl Exporter {
    /// Binds to an address in the syntax of `--metrics`.
    pub(crate) fn bind(text: &str) -> Result<Self, Failure> {
        HttpServer::bind("--metrics", "127.0.0.1:9683 or [::1]:9683", text).map(Self)
    }

    /// Returns the URI of the metrics.
    pub(crate) fn uri(&self) -> String {
        self.0.uri("/metrics")
    }

    /// Answers HTTP requests until the runtime ends, each connection in a task of its own. It locks a server or relay
    /// only to copy its counters.
    pub(crate) async fn run(self, measured: impl MetricsSource) {
        self.0.run(Metrics(measured)).await;
    }
}

/// The metrics endpoint's pages.
struct Metrics<M>(M);

impl<M: MetricsSource> Site for Metrics<M> {
    fn get(&self, path: &str) -> HttpResponse<'_> {
        match path {
            "/metrics" => HttpResponse {
                kind: "text/plain; version=0.0.4; charset=utf-8",
                body: (self.0.exposition() + &process::exposition()).into_bytes().into(),
                ..HttpResponse::plain("200 OK", "")
            },
            // A load balancer should send no more clients here.
            "/healthz" if self.0.is_closing() => HttpResponse::plain("503 Service Unavailable", "stopping\n"),
            "/healthz" => HttpResponse::plain("200 OK", "ok\n"),
            _ => HttpResponse::plain("404 Not Found", "the metrics are at /metrics, and /healthz says ok\n"),
        }
    }
}
