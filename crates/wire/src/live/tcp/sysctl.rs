//! The settings of Linux's TCP that make it do what the simulated TCP does.

use std::fs;
use std::io;

/// The settings, in `/proc/sys/net/ipv4`. Reno without selective acknowledgements, F-RTO, tail loss probes, RACK, timestamps and
/// ECN; SYNs are repeated with doubled timeouts from the first on; nothing is remembered from one connection to the next.
const SETTINGS: [(&str, &str); 9] = [
    ("tcp_congestion_control", "reno"),
    ("tcp_sack", "0"),
    ("tcp_frto", "0"),
    ("tcp_early_retrans", "0"),
    ("tcp_recovery", "0"),
    ("tcp_timestamps", "0"),
    ("tcp_ecn", "0"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_syn_linear_timeouts", "0"),
];

/// Makes the settings in the network namespace of the calling thread. A kernel without a setting does not have the feature that
/// it switches off.
///
/// # Errors
/// The errors of the files. A missing file is not an error.
pub(super) fn set() -> io::Result<()> {
    for (name, value) in SETTINGS {
        match fs::write(format!("/proc/sys/net/ipv4/{name}"), value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
