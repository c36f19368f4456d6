//! The audit log of writes to files: counters for Prometheus, and an event of `coapace::audit` for each write.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coapace_net::{Code, Request, Response};
use tracing::{info, warn};

/// The target of audit events in the log.
const TARGET: &str = "coapace::audit";

/// The least time between two logged events about refused writes. There is a limit because anyone can cause
/// any number of refusals.
const INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of characters of a path in an audit event.
const MAX_PATH: usize = 256;

/// The values of the label `result`, each with its meaning in `docs/metrics.md`.
const RESULTS: [&str; 7] = ["created", "changed", "deleted", "denied", "no_room", "too_fast", "failed"];

/// The numbers of PUT and DELETE requests by result, the time of the last logged refusal, and the number of
/// refusals since then that were not logged.
#[derive(Debug, Default)]
pub(super) struct Audit {
    counts: [AtomicU64; RESULTS.len()],
    refused: Mutex<(Option<Instant>, u64)>,
}

impl Audit {
    /// Counts a PUT or DELETE, and logs it with its response. At most one refused write a second is logged.
    pub(super) fn note(&self, transport: &str, request: &Request, response: &Response) {
        let result = result(response.code);
        if let Some(count) =
            RESULTS.iter().position(|&name| name == result).and_then(|at| self.counts.get(at))
        {
            // Counters are only summed, so no other memory has to be in order with them.
            count.fetch_add(1, Ordering::Relaxed);
        }
        let (peer, identity) = (request.from(), request.peer_identity().map(ToString::to_string));
        let mut path = request.path();
        // The path comes from outside, and may be as long as a datagram.
        if let Some((end, _)) = path.char_indices().nth(MAX_PATH) {
            path.truncate(end);
            path.push('…');
        }
        let (method, code) = (request.method().name().unwrap_or("?"), response.code.dotted().to_string());
        let (identity, bytes) = (identity.as_deref(), request.payload().len());
        let (path, code) = (path.as_str(), code.as_str());
        // A successful write is logged in any case: the limits on writing bound how many there are.
        if response.is_success() {
            return info!(target: TARGET, %peer, transport, identity, method, path, bytes, code, result, "write");
        }
        // The next logged event reports how many were left out.
        if let Some(suppressed) = self.pass(Instant::now()) {
            let why = response.text();
            let why = why.as_ref();
            warn!(
                target: TARGET,
                %peer, transport, identity, method, path, bytes, code, result, why, suppressed, "write refused"
            );
        }
    }

    /// Decides whether to log a refused write. Returns `None` if the last logged refusal was less than
    /// [`INTERVAL`] ago, otherwise the number of refusals since then that were not logged.
    fn pass(&self, now: Instant) -> Option<u64> {
        let (last, suppressed) = &mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            *suppressed += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(suppressed))
    }

    /// Returns each value of the label `result` with its count.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RESULTS.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// Returns the value of the label `result` for a write that was answered with this code.
fn result(code: Code) -> &'static str {
    match code {
        Code::CREATED => "created",
        Code::CHANGED => "changed",
        Code::DELETED => "deleted",
        // The codes are the answers of `permit` and `check`, of the quota, and of the pace or a full disk.
        Code::UNAUTHORIZED | Code::FORBIDDEN => "denied",
        Code::REQUEST_ENTITY_TOO_LARGE => "no_room",
        Code::TOO_MANY_REQUESTS | Code::SERVICE_UNAVAILABLE => "too_fast",
        _ => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_of_a_write_has_a_counter() {
        for code in 0..=u8::MAX {
            assert!(RESULTS.contains(&result(Code(code))));
        }
    }

    #[test]
    fn one_refused_write_a_second_is_logged_with_the_number_left_out() {
        let (audit, begin) = (Audit::default(), Instant::now());
        let at = |ms| audit.pass(begin + Duration::from_millis(ms));
        assert_eq!([at(0), at(1), at(999), at(1_000), at(5_000)], [Some(0), None, None, Some(2), Some(0)]);
    }
}
