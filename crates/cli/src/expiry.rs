//! Certificates that expire: warnings in the log, and a metric.

use std::ops::Range;
use std::time::{Duration, Instant, SystemTime};

use tracing::{error, warn};

use crate::process::sample;

const DAY: Duration = Duration::from_hours(24);

/// How long before the expiry of a certificate the first warning is logged.
const NOTICE: Duration = Duration::from_hours(30 * 24);

/// The state of a certificate at one moment, with full days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpiryState {
    Fine,
    /// The certificate is not valid yet.
    Early,
    /// The certificate expires after this many full days, at most 30.
    Soon(u64),
    /// The certificate expired this many full days ago.
    Expired(u64),
}

fn state(validity: &Range<SystemTime>, now: SystemTime) -> ExpiryState {
    let days = |time: Duration| time.as_secs() / DAY.as_secs();
    match validity.end.duration_since(now) {
        Err(ago) => ExpiryState::Expired(days(ago.duration())),
        Ok(_) if now < validity.start => ExpiryState::Early,
        Ok(left) if left <= NOTICE => ExpiryState::Soon(days(left)),
        Ok(_) => ExpiryState::Fine,
    }
}

/// The warnings about a server's certificate: at most one a day for each certificate, and one more when it expires.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    /// The last warning: the validity of the certificate, the time of the warning, and whether the certificate had expired.
    last: Option<(Range<SystemTime>, Instant, bool)>,
}

impl Expiry {
    /// Logs a warning about a certificate with this validity, if one is due.
    pub(crate) fn look(&mut self, validity: Option<Range<SystemTime>>) {
        let Some(validity) = validity else { return };
        let (state, now) = (state(&validity, SystemTime::now()), Instant::now());
        let expired = matches!(state, ExpiryState::Expired(_));
        if state == ExpiryState::Fine || !self.is_due(&validity, now, expired) {
            return;
        }
        self.last = Some((validity, now, expired));
        let remedy = "renew it (--cert), and send SIGHUP";
        match state {
            ExpiryState::Fine => {}
            ExpiryState::Early => warn!("the certificate is not valid yet; clients refuse it"),
            ExpiryState::Soon(days) => warn!(days, "the certificate expires soon; {remedy}"),
            ExpiryState::Expired(days) => {
                error!(days, "the certificate has expired, and clients refuse it; {remedy}");
            }
        }
    }

    fn is_due(&self, validity: &Range<SystemTime>, now: Instant, expired: bool) -> bool {
        self.last.as_ref().is_none_or(|(before, at, was)| {
            // A reload may have brought another certificate that expires soon, which deserves its own warning at once.
            before != validity || *was != expired || now.saturating_duration_since(*at) >= DAY
        })
    }
}

/// Returns the metric with the time at which a certificate of this validity expires; empty without a certificate.
pub(crate) fn exposition(validity: Option<&Range<SystemTime>>) -> String {
    let mut text = String::new();
    let end = validity.and_then(|validity| validity.end.duration_since(SystemTime::UNIX_EPOCH).ok());
    let help = "When the certificate of TLS expires, in seconds since 1970.";
    let name = "coap_certificate_expiry_timestamp_seconds";
    sample(&mut text, name, "", "gauge", help, end.map(|end| end.as_secs() as f64));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(days: u64) -> Duration {
        DAY * u32::try_from(days).unwrap()
    }

    #[test]
    fn a_certificate_is_warned_about_from_30_days_before_it_expires() {
        let begin = SystemTime::UNIX_EPOCH + days(20_000);
        let validity = begin..begin + days(90);
        let second = Duration::from_secs(1);
        for (now, expected) in [
            (begin - second, ExpiryState::Early),
            (begin + days(60) - second, ExpiryState::Fine),
            (begin + days(60), ExpiryState::Soon(30)),
            (begin + days(90) - second, ExpiryState::Soon(0)),
            (begin + days(90) + second, ExpiryState::Expired(0)),
            (begin + days(93), ExpiryState::Expired(3)),
        ] {
            assert_eq!(state(&validity, now), expected, "{now:?}");
        }
    }

    #[test]
    fn warnings_about_certificates_come_daily_and_at_once_for_a_new_certificate() {
        let (begin, now) = (SystemTime::UNIX_EPOCH + days(20_000), Instant::now());
        let (old, new) = (begin..begin + days(10), begin..begin + days(20));
        let warned = Expiry { last: Some((old.clone(), now, false)) };
        let hour = DAY / 24;
        assert!(!warned.is_due(&old, now + hour, false));
        assert!(warned.is_due(&old, now + hour, true), "it has expired meanwhile");
        assert!(warned.is_due(&new, now + hour, false), "it was replaced");
        assert!(warned.is_due(&old, now + DAY, false));
        assert!(Expiry::default().is_due(&old, now, false));
    }
}
