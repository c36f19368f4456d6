//! The table of metrics. The entry of a metric has everything that is particular to it.
//!
//! Columns of CSV and JSON lines, the table of the terminal, axes of charts, published values and `docs/results.md` are made
//! from the entries. A new metric is a new entry.

mod computed;

use serde::{Deserialize, Serialize};

use coapace_run::measured::ratio;
use coapace_run::measured::{Delays, Estimate, RunResult, TransferResult};
use computed::{
    asks, carried_load_bps, clients, exchange_time_s, exchange_times, fct, finished_s, known, of_transfers,
    requests_over_udp, sum, transfer_times_s,
};

/// Whether smaller or larger values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Smaller values are better.
    Lower,
    /// Larger values are better.
    Higher,
    /// The metric describes a run, and is neither good nor bad.
    Neither,
}

/// How the value of a cell is computed from its runs.
pub(super) enum Pooling {
    /// The mean of the values of the runs that have one.
    Mean(fn(&RunResult) -> Option<f64>),
    /// One value from all runs together.
    Together(fn(&[RunResult]) -> Option<f64>),
}

/// Declares the fields of an entry with their defaults, and a method of [`Metric`] for each. An empty text means that there is
/// no such text.
macro_rules! fields {
    ($($(#[doc = $about:literal])+ $vis:vis $field:ident: $type:ty = $default:expr;)+) => {
        /// An entry of the table of metrics.
        pub(super) struct MetricEntry {
            $($field: $type,)+
            about: &'static str,
            pub(super) pooling: Pooling,
        }

        /// The defaults of an entry.
        const PLAIN: MetricEntry = MetricEntry { $($field: $default,)+ about: "", pooling: Pooling::Mean(|_| None) };

        impl Metric {
            $($(#[doc = $about])+ $vis const fn $field(self) -> $type {
                // Variants and entries come from one list, so the number of a variant is the place of its entry.
                MEASURES[self as usize].$field
            })+

            /// Returns the definition of the metric, in a sentence or two.
            pub const fn about(self) -> &'static str {
                MEASURES[self as usize].about.trim_ascii()
            }
        }
    };
}

fields! {
    /// Returns the name of the metric's column.
    pub name: &'static str = "";
    /// Returns the name of the column with the half-width of the 95 % confidence interval; empty if there is none.
    pub(super) interval: &'static str = "";
    /// Returns the name of the metric for people.
    pub title: &'static str = "";
    /// Returns the abbreviated unit; empty for an index or a ratio.
    pub unit: &'static str = "";
    /// Returns the header in the terminal; empty if the metric is not shown there.
    pub(crate) header: &'static str = "";
    /// Returns the number of significant digits to show.
    pub digits: i32 = 3;
    /// Returns the importance of the column in the terminal: a narrow terminal leaves out the least important columns first.
    pub(crate) worth: u8 = 0;
    /// Returns whether the terminal leaves out the column if it is zero everywhere.
    pub(crate) is_rare: bool = false;
    /// Returns whether single flows also have the metric.
    pub is_of_flows: bool = false;
    /// Returns whether single transfers also have the metric.
    pub is_of_transfers: bool = false;
    /// Returns whether smaller or larger values are better.
    pub better: Better = Better::Neither;
}

/// Declares [`Metric`] and its table from one list of entries.
macro_rules! measures {
    ($($(#[doc = $about:literal])+ $name:ident { $($field:ident: $value:expr,)+ })+) => {
        /// A quantity of the results: a column, the axis of a chart, or a published value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Metric { $($(#[doc = $about])+ $name,)+ }

        impl Metric {
            /// All metrics, in the sequence of the columns.
            pub const ALL: [Self; MEASURES.len()] = [$(Self::$name,)+];
        }

        pub(super) const MEASURES: &[MetricEntry] = &[$(MetricEntry { $($field: $value,)+ about: concat!($($about),+), ..PLAIN },)+];
    };
}

use Better::{Higher, Lower};
use Pooling::{Mean, Together};

measures! {
    /// Median flow completion time over all clients and seeds, from a client's first request to its last response.
    /// A client that gave up counts as never finishing.
    MedianFct {
        name: "median_fct_s", interval: "median_fct_ci95", title: "median FCT", unit: "s",
        header: "median FCT", digits: 4, worth: 20, better: Lower,
        pooling: Together(|runs| fct(runs, 0.5)),
    }
    /// 10 % quantile of the flow completion time.
    FctP10 {
        name: "p10", interval: "p10_ci95", title: "10 % quantile of the FCT", unit: "s",
        header: "10 %", digits: 4, worth: 3, better: Lower,
        pooling: Together(|runs| fct(runs, 0.1)),
    }
    /// 25 % quantile of the flow completion time.
    FctP25 {
        name: "p25", interval: "p25_ci95", title: "25 % quantile of the FCT", unit: "s", digits: 4, better: Lower,
        pooling: Together(|runs| fct(runs, 0.25)),
    }
    /// 75 % quantile of the flow completion time.
    FctP75 {
        name: "p75", interval: "p75_ci95", title: "75 % quantile of the FCT", unit: "s", digits: 4, better: Lower,
        pooling: Together(|runs| fct(runs, 0.75)),
    }
    /// 90 % quantile of the flow completion time.
    FctP90 {
        name: "p90", interval: "p90_ci95", title: "90 % quantile of the FCT", unit: "s",
        header: "90 %", digits: 4, worth: 18, better: Lower,
        pooling: Together(|runs| fct(runs, 0.9)),
    }
    /// Requests and responses that a client sent again, averaged over clients and runs; over TCP, segments.
    Retransmissions {
        name: "retransmissions_per_client", interval: "retransmissions_per_client_ci95",
        title: "retransmissions", unit: "per client", header: "retrans.", worth: 17, better: Lower,
        pooling: Mean(|run| asks(run).then(|| run.retransmissions as f64 / clients(run))),
    }
    /// Spurious retransmissions of a client: an earlier copy of the message had arrived. Every reply to a message after
    /// the first reply shows one, even if the client gave up the message before any reply came.
    Spurious {
        name: "spurious_per_client", interval: "spurious_per_client_ci95",
        title: "spurious retransmissions", unit: "per client", header: "spurious", worth: 15, better: Lower,
        pooling: Mean(|run| asks(run).then(|| run.spurious as f64 / clients(run))),
    }
    /// Packets that found a queue full, or that queue management dropped.
    Drops {
        name: "drops", title: "packets dropped", unit: "per run", header: "drops", worth: 2, better: Lower,
        pooling: Mean(|run| Some(run.drops as f64)),
    }
    /// Packets that a link lost.
    Losses {
        name: "losses", title: "packets lost", unit: "per run",
        pooling: Mean(|run| Some(run.losses as f64)),
    }
    /// Packets that queue management marked CE (RFC 3168); not known if packets are not ECN-capable.
    EcnMarks {
        name: "ecn_marks", title: "packets marked", unit: "per run", header: "marks", worth: 2, is_rare: true,
        pooling: Mean(|run| Some(run.ecn?.marks as f64)),
    }
    /// Exchanges of which a request reached its server with CE, divided by all exchanges that ended, from 0 to 1. The client
    /// does not learn of it.
    CongestedRequests {
        name: "ce_request_share", title: "exchanges with a marked request",
        pooling: Mean(|run| ratio(run.ecn?.requests as f64, (run.completed() + run.given_up) as f64)),
    }
    /// Exchanges of which a response reached its client with CE, divided by all exchanges that ended, from 0 to 1.
    CongestedResponses {
        name: "ce_response_share", title: "exchanges with a marked response",
        pooling: Mean(|run| ratio(run.ecn?.responses as f64, (run.completed() + run.given_up) as f64)),
    }
    /// Mean flow completion time of the clients that finished, over all seeds.
    MeanFct {
        name: "mean_fct_s", interval: "mean_fct_ci95", title: "mean FCT", unit: "s",
        header: "mean FCT", digits: 4, worth: 14, better: Lower,
        pooling: Together(|runs| Estimate::of(&finished_s(runs).collect::<Vec<_>>()).map(|it| it.mean)),
    }
    /// Clients that had their last response, summed over all seeds.
    ClientsFinished {
        name: "clients_finished", title: "clients that finished", unit: "clients", digits: 9, better: Higher,
        pooling: Together(|runs| known(runs).then(|| finished_s(runs).count() as f64)),
    }
    /// Clients that gave up, summed over all seeds.
    ClientsGaveUp {
        name: "clients_gave_up", title: "clients that gave up", unit: "clients",
        header: "gave up", digits: 9, worth: 21, is_rare: true, better: Lower,
        pooling: Together(|runs| {
            let clients = runs.iter().map(|run| run.fct_s.len()).sum::<usize>();
            known(runs).then(|| (clients - finished_s(runs).count()) as f64)
        }),
    }
    /// Payload of completed exchanges a second, over all clients.
    Goodput {
        name: "goodput_bps", interval: "goodput_ci95", title: "goodput", unit: "bit/s",
        header: "goodput", worth: 1, better: Higher,
        pooling: Mean(|run| asks(run).then_some(run.goodput_bps)),
    }
    /// Jain's fairness index over the clients' rates of completed exchanges, from 1/n to 1.
    Jain {
        name: "jain", interval: "jain_ci95", title: "Jain’s index", header: "Jain", better: Higher,
        pooling: Mean(RunResult::fairness),
    }
    /// Exchanges that all clients completed.
    Exchanges {
        name: "exchanges", title: "exchanges completed", unit: "per run", better: Higher,
        pooling: Mean(|run| Some(run.completed() as f64)),
    }
    /// Exchanges given up.
    GivenUp {
        name: "given_up", title: "exchanges given up", unit: "per run",
        header: "gave up", worth: 21, is_rare: true, better: Lower,
        pooling: Mean(|run| Some(run.given_up as f64)),
    }
    /// Completed exchanges a second, over all clients.
    Throughput {
        name: "throughput", interval: "throughput_ci95", title: "throughput", unit: "exchanges/s",
        header: "throughput", digits: 4, worth: 15, better: Higher,
        pooling: Mean(|run| asks(run).then_some(run.throughput)),
    }
    /// Mean time of a completed exchange, from its first request to its response; not known over TCP.
    ExchangeTime {
        name: "exchange_time_s", interval: "exchange_time_ci95", title: "exchange time", unit: "s", digits: 4, better: Lower,
        pooling: Together(exchange_time_s),
    }
    /// Requests that all hosts sent again; over TCP, segments.
    AllRetransmissions {
        name: "retransmissions", title: "retransmissions of all clients", unit: "per run", better: Lower,
        pooling: Mean(|run| Some(run.retransmissions as f64)),
    }
    /// Spurious retransmissions of all clients.
    AllSpurious {
        name: "spurious", title: "spurious retransmissions of all clients", unit: "per run", better: Lower,
        pooling: Mean(|run| Some(run.spurious as f64)),
    }
    /// Retransmissions divided by all requests sent, retransmissions included, from 0 to 1; not known over TCP.
    RetransmissionShare {
        name: "retransmission_share", interval: "retransmission_share_ci95", title: "share of retransmissions", better: Lower,
        pooling: Mean(|run| ratio(run.retransmissions as f64, requests_over_udp(run)?)),
    }
    /// Requests sent, retransmissions included.
    RequestsSent {
        name: "requests_sent", title: "requests sent", unit: "per run",
        pooling: Mean(|run| Some(run.requests_sent as f64)),
    }
    /// Responses sent, answers to duplicates included.
    ResponsesSent {
        name: "responses_sent", title: "responses sent", unit: "per run",
        pooling: Mean(|run| Some(run.responses_sent as f64)),
    }
    /// Packet delivery ratio of flows: messages that reached the application of their sink, divided by all messages that the
    /// application had to send. A message that the application dropped, because its client was busy or no sink observed it,
    /// counts as not delivered. From 0 to 1.
    Pdr {
        name: "pdr", interval: "pdr_ci95", title: "packet delivery ratio", header: "PDR", worth: 20,
        is_of_flows: true, better: Higher,
        pooling: Mean(|run| ratio(sum(run, |flow| flow.reached)?, sum(run, |flow| flow.offered)?)),
    }
    /// Messages that reached their sink, divided by messages that the application handed to the endpoint: messages that it
    /// dropped are left out, so a client that is always busy looks better than it is. From 0 to 1.
    PdrSent {
        name: "pdr_sent", interval: "pdr_sent_ci95", title: "delivery ratio of sent messages", is_of_flows: true, better: Higher,
        pooling: Mean(|run| {
            let sent = sum(run, |flow| flow.offered - flow.dropped.min(flow.offered))?;
            ratio(sum(run, |flow| flow.reached)?, sent)
        }),
    }
    /// Bits of CoAP messages per second that reached their sinks.
    CarriedLoad {
        name: "carried_load_bps", interval: "carried_load_ci95", title: "carried load", unit: "bit/s",
        header: "carried", worth: 13, is_of_flows: true, better: Higher,
        pooling: Mean(carried_load_bps),
    }
    /// Mean time from the offer of a message to its first arrival at the application of its sink, over the messages that
    /// arrived. A flow may restrict them to those offered in and shortly after its bursts (`delays_within`).
    Delay {
        name: "delay_s", interval: "delay_ci95", title: "delay", unit: "s", header: "delay", worth: 12,
        is_of_flows: true, better: Lower,
        pooling: Mean(|run| run.delays().mean_s()),
    }
    /// Median of the delay, over the messages of all runs. Delays are counted in buckets that are 1/1024 of the delay wide
    /// or narrower; a quantile is interpolated within its bucket.
    DelayP50 {
        name: "delay_p50_s", interval: "delay_p50_ci95", title: "median delay", unit: "s", digits: 4,
        is_of_flows: true, better: Lower,
        pooling: Together(|runs| Delays::of(runs).quantile_s(0.5)),
    }
    /// 90 % quantile of the delay, over the messages of all runs, from the same buckets.
    DelayP90 {
        name: "delay_p90_s", interval: "delay_p90_ci95", title: "90 % quantile of the delay", unit: "s", digits: 4,
        header: "90 % delay", worth: 4, is_of_flows: true, better: Lower,
        pooling: Together(|runs| Delays::of(runs).quantile_s(0.9)),
    }
    /// 99 % quantile of the delay, over the messages of all runs, from the same buckets.
    DelayP99 {
        name: "delay_p99_s", interval: "delay_p99_ci95", title: "99 % quantile of the delay", unit: "s", digits: 4,
        header: "99 % delay", worth: 3, is_of_flows: true, better: Lower,
        pooling: Together(|runs| Delays::of(runs).quantile_s(0.99)),
    }
    /// Mean time from the event that all clients report until the delay was back at no more than 1.1 times its earlier
    /// mean (Betzler et al. 2015), over the runs that settled.
    SettlingTime {
        name: "settling_time_s", interval: "settling_time_ci95", title: "settling time", unit: "s",
        header: "settling", worth: 11, better: Lower,
        pooling: Mean(|run| run.settling?.time_s),
    }
    /// Runs that ended before the delay was back at no more than 1.1 times its mean before the event.
    Unsettled {
        name: "unsettled", title: "runs that did not settle", unit: "runs",
        header: "unsettled", worth: 9, is_rare: true, better: Lower,
        pooling: Together(|runs| {
            let settlings = || runs.iter().filter_map(|run| run.settling);
            let unsettled = settlings().filter(|settling| settling.time_s.is_none()).count();
            settlings().next().map(|_| unsettled as f64)
        }),
    }
    /// Mean timeout of first transmissions of confirmable messages, dither included.
    InitialRto {
        name: "initial_rto_s", interval: "initial_rto_ci95", title: "initial RTO", unit: "s",
        header: "initial RTO", worth: 5,
        pooling: Mean(|run| run.timeouts.initial_s()),
    }
    /// Longest timeout of a first transmission in a run, averaged over the runs.
    InitialRtoMax {
        name: "initial_rto_max_s", interval: "initial_rto_max_ci95", title: "longest initial RTO", unit: "s",
        pooling: Mean(|run| run.timeouts.max_s()),
    }
    /// Mean timeout that expired before a retransmission, of confirmable messages, dither included. The timeout before
    /// the last retransmission counts if the mechanism also waits after that retransmission.
    ExpiredTimeout {
        name: "expired_timeout_mean_s", interval: "expired_timeout_mean_ci95", title: "mean expired timeout", unit: "s",
        pooling: Mean(|run| run.timeouts.expired_s()),
    }
    /// Longest timeout that expired before a retransmission in a run, averaged over the runs.
    ExpiredTimeoutMax {
        name: "expired_timeout_max_s", interval: "expired_timeout_max_ci95", title: "longest expired timeout", unit: "s",
        pooling: Mean(|run| run.timeouts.expired_max_s()),
    }
    /// Timeouts per second that expired before a retransmission, over all clients.
    ExpiredTimeouts {
        name: "expired_timeouts_per_s", interval: "expired_timeouts_ci95", title: "expired timeouts", unit: "per second",
        pooling: Mean(|run| ratio(run.timeouts.expired.0 as f64, run.duration_s)),
    }
    /// Messages that the applications of flows had to send.
    Offered {
        name: "offered", title: "messages offered", unit: "per run", header: "offered", worth: 1, is_of_flows: true,
        pooling: Mean(|run| sum(run, |flow| flow.offered)),
    }
    /// Messages that the applications dropped, because a client was busy or no sink observed it.
    DroppedByApplication {
        name: "dropped_by_application", title: "messages dropped by the application", unit: "per run",
        header: "dropped", worth: 9, is_of_flows: true, better: Lower,
        pooling: Mean(|run| sum(run, |flow| flow.dropped)),
    }
    /// Messages that reached the application of their sink.
    Reached {
        name: "reached", title: "messages that arrived", unit: "per run", is_of_flows: true, better: Higher,
        pooling: Mean(|run| sum(run, |flow| flow.reached)),
    }
    /// Frames that the nodes of a mesh sent: each attempt counts, acknowledgements do not.
    Frames {
        name: "frames", interval: "frames_ci95", title: "frames sent", unit: "per run", header: "frames", digits: 4, worth: 1,
        pooling: Mean(|run| Some(run.mesh.as_ref()?.counters.frames as f64)),
    }
    /// Frames and datagrams that a mesh lost for good.
    MeshDrops {
        name: "mesh_drops", interval: "mesh_drops_ci95", title: "frames and datagrams lost in the mesh", unit: "per run",
        header: "lost in mesh", worth: 2, better: Lower,
        pooling: Mean(|run| Some(run.mesh.as_ref()?.drops() as f64)),
    }
    /// Energy of all radios for each byte of payload that reached its sink.
    EnergyPerByte {
        name: "energy_per_byte_uj", interval: "energy_ci95", title: "energy for a byte", unit: "µJ",
        header: "µJ/B", worth: 4, better: Lower,
        pooling: Mean(|run| {
            let bytes: f64 = run.flows.iter().map(|flow| flow.reached as f64 * f64::from(flow.payload_bytes)).sum();
            (bytes > 0.0).then_some(run.mesh.as_ref()?.energy_mj() * 1e3 / bytes)
        }),
    }
    /// Time that the radios of a mesh were on, in percent of all time: the duty cycle. It is not known if radios are always on.
    RadioOn {
        name: "radio_on_percent", interval: "radio_on_ci95", title: "radio on", unit: "%", header: "radio on", digits: 3, worth: 3, better: Lower,
        pooling: Mean(|run| run.mesh.as_ref().and_then(|mesh| ratio(100.0 * mesh.on_s, mesh.all_s))),
    }
    /// Airtime of the busiest node of a mesh: the time that its radio sent or received a frame for any node, in percent of
    /// the measured time. Acknowledgements and routing count.
    AirTime {
        name: "busiest_airtime_percent", interval: "busiest_airtime_ci95", title: "airtime of the busiest node", unit: "%",
        header: "airtime", digits: 3, worth: 3,
        pooling: Mean(|run| ratio(100.0 * run.mesh.as_ref()?.busiest_s(), run.duration_s)),
    }
    /// Flow completion time of the last client, over all clients and seeds. A mechanism that is fast for most clients may keep
    /// a few waiting, which the median does not show.
    FctMax {
        name: "fct_max_s", interval: "fct_max_ci95", title: "FCT of the last client", unit: "s",
        header: "last client", digits: 4, worth: 16, better: Lower,
        pooling: Together(|runs| fct(runs, 1.0)),
    }
    /// Requests sent, divided by completed exchanges: the cost of an answer. Retransmissions, and the requests of exchanges
    /// that were given up, count; not known over TCP.
    TransmissionsPerExchange {
        name: "transmissions_per_exchange", interval: "transmissions_per_exchange_ci95",
        title: "transmissions per exchange", better: Lower,
        pooling: Mean(|run| ratio(requests_over_udp(run)?, run.completed() as f64)),
    }
    /// 90 % quantile of the exchange time, over all exchanges of all runs. It is recorded only if other clients
    /// transfer bodies.
    ExchangeTimeP90 {
        name: "exchange_time_p90_s", interval: "exchange_time_p90_ci95", title: "90 % quantile of the exchange time", unit: "s",
        header: "90 % exchange", digits: 4, worth: 10, better: Lower,
        pooling: Together(|runs| exchange_times(runs).quantile_s(0.9)),
    }
    /// Mean time of a complete transfer, from its beginning to its last block; over TCP the first transfer includes the
    /// handshake.
    TransferTime {
        name: "transfer_time_s", interval: "transfer_time_ci95", title: "transfer time", unit: "s",
        header: "transfer", digits: 4, worth: 20, is_of_transfers: true, better: Lower,
        pooling: Together(|runs| Estimate::of(&transfer_times_s(runs)).map(|it| it.mean)),
    }
    /// Time of the slowest complete transfer of all runs.
    TransferTimeMax {
        name: "transfer_time_max_s", interval: "transfer_time_max_ci95", title: "time of the slowest transfer", unit: "s",
        header: "slowest", digits: 4, worth: 16, is_of_transfers: true, better: Lower,
        pooling: Together(|runs| transfer_times_s(runs).into_iter().reduce(f64::max)),
    }
    /// Share of the capacity of the slowest hop that the bodies used while transfers were under way, headers not
    /// counted, from 0 to 1: the sum over the transfers of the scenario. It is not known if no hop has a rate.
    LinkShare {
        name: "link_share", interval: "link_share_ci95", title: "share of the link", header: "of link", worth: 14, is_of_transfers: true, better: Higher,
        pooling: Mean(|run| run.transfers.iter().filter_map(TransferResult::link_share).reduce(|a, b| a + b)),
    }
    /// Transfers that were completed, with the body unchanged.
    TransfersCompleted {
        name: "transfers_completed", title: "transfers completed", unit: "per run", header: "done", worth: 6, is_of_transfers: true, better: Higher,
        pooling: Mean(|run| of_transfers(run, |own| own.completed_s.len() as u64)),
    }
    /// Transfers that were given up, or whose body was changed on the way.
    TransfersFailed {
        name: "transfers_failed", title: "transfers failed", unit: "per run", header: "failed", worth: 21, is_rare: true, is_of_transfers: true, better: Lower,
        pooling: Mean(|run| of_transfers(run, |own| own.failed)),
    }
    /// Blocks that clients asked for again, or sent again; over TCP, segments that either end sent again.
    BlocksAgain {
        name: "blocks_again", interval: "blocks_again_ci95", title: "blocks sent again", unit: "per run", header: "again", worth: 9, is_of_transfers: true, better: Lower,
        pooling: Mean(|run| of_transfers(run, |own| own.blocks_again)),
    }
    /// Blocks that arrived more than once: spurious retransmissions. Over TCP, segments at either end.
    BlocksTwice {
        name: "blocks_twice", interval: "blocks_twice_ci95", title: "blocks that arrived twice", unit: "per run", header: "twice", worth: 8, is_of_transfers: true, better: Lower,
        pooling: Mean(|run| of_transfers(run, |own| own.blocks_twice)),
    }
    /// Simulated seconds that were measured, the warm-up left out.
    Duration {
        name: "duration_s", title: "measured time", unit: "s", digits: 4,
        pooling: Mean(|run| Some(run.duration_s)),
    }
    /// Events that the simulator handled.
    Events {
        name: "events", title: "events simulated", unit: "per run",
        pooling: Mean(|run| Some(run.events as f64)),
    }
}
