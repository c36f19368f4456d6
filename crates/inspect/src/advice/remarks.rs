//! Remarks about a fitted scenario: which numbers were measured, fitted and guessed.

use super::fit::Fitted;
use super::lives::{Sign, Starts};
use super::measures::TrafficMeasures;
use super::workload::ObservedWorkload;

/// A fitted rate above this many times the highest rate in the capture has no visible effect there, so it counts as guessed.
const UNSEEN: f64 = 1.5;

/// The distance above which a fit is called poor.
const POOR: f64 = 2.0;

/// Returns sentences that name the measured, fitted and guessed numbers of a scenario.
pub fn remarks(
    workload: &ObservedWorkload,
    measured: &TrafficMeasures,
    fitted: &Fitted,
    nearest: &str,
) -> Vec<String> {
    let link = &fitted.link;
    let mut remarks = vec![
        "Measured: clients, exchanges, pauses, sizes of packets.".to_owned(),
        format!(
            "Fitted: delay, jitter and loss, so that clients with {nearest} have the round trips, losses, copies and completion \
             times of the capture. Simulated median round trip: {:.0} ms (capture: {:.0} ms). Simulated loss of round trips: \
             {:.1} % (capture: {:.1} %).",
            fitted.measures.rtt_s[3] * 1e3,
            measured.rtt_s[3] * 1e3,
            fitted.measures.loss * 100.0,
            measured.loss * 100.0,
        ),
    ];
    let mut tell = |text: &str| remarks.push(text.to_owned());
    if fitted.distance > POOR {
        tell(
            "The fit is poor: no simulated path of this kind reproduces the capture. Rankings on it mean little.",
        );
    }
    // A capture at one place has the sum of both ways only, and any split explains it.
    tell("Assumed: both directions have equal delays. A capture beside the clients shows round trips only.");
    if link.loss > 0.001 {
        remarks.push(format!(
            "Fitted, but hardly better than guessed: that {:.1} % of requests and {:.1} % of answers are lost, apart from full \
             buffers. The capture shows both together.",
            link.loss_of(true) * 100.0,
            link.loss_of(false) * 100.0
        ));
    }
    let mut tell = |text: &str| remarks.push(text.to_owned());
    // A rate shows only behind a queue, where packets leave one directly behind the other.
    if link.rate_bps > UNSEEN * measured.peak_bps {
        tell(
            "Assumed: the rate. Packets rarely followed each other closely, so the path has this rate or more. Mechanisms that \
             send more copies may meet queues that the capture does not show.",
        );
    } else {
        tell("Fitted: the rate, from answers that followed each other closely.");
    }
    // A full buffer loses packets while its queue is long, and so while round trips are long. A bad link loses them at any
    // time.
    match link.buffer_bytes {
        Some(_) if measured.busy_loss > measured.quiet_loss + 0.02 => {
            tell("Fitted: the buffer size, from losses while round trips were long.");
        }
        Some(_) => tell("Assumed: the buffer size, because losses do not depend on the round-trip time."),
        None => {
            tell("Assumed: the buffer is never full, because losses do not depend on the round-trip time.");
        }
    }
    if link.burst_packets.is_some() {
        tell(
            "Fitted: the mean length of a burst of losses, from the correlation of successive losses. Assumed: a burst loses 80 % of its packets.",
        );
    }
    remarks.push(memory(workload));
    remarks.push(persistence(workload));
    let mut tell = |text: &str| remarks.push(text.to_owned());
    if !workload.is_even {
        tell("Simplified: clients have the median number of exchanges, though some had more than others.");
    }
    if workload.interval_s.is_none() && !workload.is_pause_constant {
        tell("Simplified: every pause between an answer and the next request is the median pause.");
    }
    if workload.servers > 1 {
        tell("Assumed: all servers are behind the same path.");
    }
    if workload.separate > 0.1 {
        tell("Left out: separate responses. The answer comes with the acknowledgement here.");
    }
    remarks
}

/// Returns a sentence about whether clients keep their estimates from exchange to exchange.
fn memory(workload: &ObservedWorkload) -> String {
    let Starts { restarts, shown_by, pause_s, .. } = workload.starts;
    let sign = match shown_by {
        Some(Sign::MessageIds) => "Message IDs",
        Some(Sign::Tokens) => "tokens",
        Some(Sign::Ports) => "port",
        None => {
            return "Assumed: clients keep their estimates from exchange to exchange. They count neither Message IDs nor \
                    tokens, so no restart would show. If they lose estimates, because they sleep or restart, set workload.kind to \"random\"."
                .to_owned();
        }
    };
    // There are batches only if clients restart as a rule.
    let Some([fewest, most]) = workload.batch else {
        let but = if restarts == 0 {
            String::new()
        } else {
            format!(", except for {restarts} restarts, which are left out")
        };
        let goes = if shown_by == Some(Sign::Ports) { "goes" } else { "count" };
        return format!(
            "Measured: clients keep their estimates from exchange to exchange. Their {sign} {goes} on{but}. If they lose \
             estimates without a restart, set workload.kind to \"random\"."
        );
    };
    let shows = if shown_by == Some(Sign::Ports) { "shows" } else { "show" };
    let pause_s = pause_s.unwrap_or(0.0);
    // A scenario has one pause for all exchanges, so a longer one before a start has no place in it.
    let left_out = if pause_s > 2.0 * workload.pause_s + 1.0 {
        format!(" Left out of the scenario: the pause of {pause_s:.0} s before a restart.")
    } else {
        String::new()
    };
    format!(
        "Measured: clients restart after {fewest} to {most} exchanges, {restarts} times in all, as their {sign} {shows}. Assumed: \
         they lose their estimates then. If they keep them in storage, set workload.kind to \"continuous\".{left_out}"
    )
}

/// Returns a sentence about how often clients retransmit.
fn persistence(workload: &ObservedWorkload) -> String {
    let ObservedWorkload { given_up, retransmissions, gives_up_after_s, .. } = *workload;
    match workload.max_retransmit {
        Some(most) => {
            let after = gives_up_after_s.map_or_else(String::new, |after_s| format!(" and {after_s:.1} s"));
            let sooner = if workload.is_impatient() { ", sooner than RFC 7252 allows" } else { "" };
            format!(
                "Measured: MAX_RETRANSMIT. {given_up} exchanges were given up, after up to {most} retransmissions{after}{sooner}."
            )
        }
        None if retransmissions <= 4 => {
            "Assumed: MAX_RETRANSMIT is 4, as in RFC 7252. No exchange was given up.".to_owned()
        }
        None => "Assumed: MAX_RETRANSMIT. The capture shows more than 4 retransmissions of an exchange, and none that was given up."
            .to_owned(),
    }
}
