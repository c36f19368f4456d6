//! The settings of Linux's TCP that make it do what the simulated TCP does.

use std::fs;
use std::io;

/// The settings in `/proc/sys/net/ipv4`. They choose Reno, and switch off selective acknowledgements, F-RTO, tail loss
/// probes, RACK, timestamps and ECN. The timeout of a SYN doubles from the first repetition on, and no connection
/// learns from an earlier one.
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

/// Applies the settings in the network namespace of the calling thread. A kernel that lacks a setting also lacks the
/// feature that the setting switches off.
///
/// # Errors
/// Errors of the files. A missing file is not an error.
pub(super) fn set() -> io::Result<()> {
    for (name, value) in SETTINGS {
        match fs::write(format!("/proc/sys/net/ipv4/{name}"), value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
