//! Figures of this process from the operating system, with the metric names of Prometheus' own clients.

use std::fmt::Write as _;
use std::fs;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::Failure;

/// Ticks of CPU time a second that Linux reports to programs: the same on all machines (USER_HZ).
const TICKS: f64 = 100.0;

static STARTED: OnceLock<SystemTime> = OnceLock::new();

/// Records the start of the process.
pub(crate) fn note_start() {
    STARTED.get_or_init(SystemTime::now);
}

/// Raises the soft limit on open files to the hard limit. The soft limit is low by default for the sake of programs
/// that use select(2).
pub(crate) fn raise_descriptor_limit() {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
            // Without it there are fewer connections and sockets; nothing else changes.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    }
}

/// The descriptors that a service has before it binds to any address: the standard streams, its runtime, signals, and one for
/// messages to systemd.
pub(crate) const OWN_DESCRIPTORS: u64 = 12;

/// The descriptors for metrics: the socket, and some connections.
pub(crate) const OF_METRICS: u64 = 5;

/// Checks that a process may have so many descriptors in all. `advice` says what helps, apart from a higher limit.
///
/// # Errors
/// The failure says how many are needed, and how many there are.
pub(crate) fn require_descriptors(needed: u64, advice: &str) -> Result<(), Failure> {
    use nix::sys::resource::{Resource, getrlimit};
    let allowed = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    if allowed >= needed {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{needed} file descriptors are needed and {allowed} allowed; raise the limit (ulimit -n, LimitNOFILE= of systemd); {advice}"
    )))
}

/// Returns the build and the process in the text format of Prometheus. Figures that the system does not offer are
/// left out; without `/proc` only the build and the start remain.
pub(crate) fn exposition() -> String {
    let mut text = String::new();
    let build =
        format!("{{version=\"{}\",commit=\"{}\"}}", env!("CARGO_PKG_VERSION"), env!("COAPACE_COMMIT"));
    sample(&mut text, "coap_build_info", &build, "gauge", "The build of the server.", Some(1.0));
    for (name, kind, help, value) in [
        ("process_cpu_seconds_total", "counter", "CPU time of user and system, in seconds.", cpu_seconds()),
        ("process_resident_memory_bytes", "gauge", "Resident memory, in bytes.", resident_bytes()),
        ("process_open_fds", "gauge", "Open file descriptors.", open_descriptors()),
        ("process_max_fds", "gauge", "File descriptors that may be open.", max_descriptors()),
        (
            "process_start_time_seconds",
            "gauge",
            "When the process started, in seconds since 1970.",
            started(),
        ),
    ] {
        sample(&mut text, name, "", kind, help, value);
    }
    text
}

/// Appends a sample of a metric with its labels in braces, if there is a value.
pub(crate) fn sample(
    text: &mut String,
    name: &str,
    labels: &str,
    kind: &str,
    help: &str,
    value: Option<f64>,
) {
    if let Some(value) = value {
        // Writing to a string does not fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{labels} {value}\n");
    }
}

/// Returns the CPU time in seconds: utime and stime are the 12th and 13th fields after the name in parentheses
/// (proc_pid_stat(5)).
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

/// Returns the resident memory in bytes; the system has it in units of 1024 bytes (proc_pid_status(5)).
fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// Returns the number of open descriptors. One of them is the directory that is being read.
fn open_descriptors() -> Option<f64> {
    fs::read_dir("/proc/self/fd").ok().map(|open| open.count().saturating_sub(1) as f64)
}

/// Returns the soft limit on descriptors (proc_pid_limits(5)).
fn max_descriptors() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn started() -> Option<f64> {
    let since = STARTED.get()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_millis() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_is_told_in_the_units_of_its_names() {
        note_start();
        let text = exposition();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{name} in {text}")).parse().expect("a number")
        };
        assert!((1e5..1e11).contains(&value("process_resident_memory_bytes")), "{text}");
        assert!((0.0..1e6).contains(&value("process_cpu_seconds_total")), "{text}");
        assert!(value("process_open_fds") >= 3.0 && value("process_open_fds") <= value("process_max_fds"));
        assert!(value("process_start_time_seconds") > 1.6e9, "{text}");
        assert!(text.contains("\ncoap_build_info{version=\""), "{text}");
    }
}
