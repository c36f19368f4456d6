//! Metrics of this process from the operating system, with the names that Prometheus' own clients use.

use std::fmt::Write as _;
use std::fs;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::Failure;

/// Ticks of CPU time a second, as Linux reports them to programs on all machines (USER_HZ).
const TICKS: f64 = 100.0;

static STARTED: OnceLock<SystemTime> = OnceLock::new();

/// Records the start time of the process.
pub(crate) fn note_start() {
    STARTED.get_or_init(SystemTime::now);
}

/// Raises the soft limit on open files to the hard limit. The soft limit is low by default only because of programs that use
/// select(2).
pub(crate) fn raise_descriptor_limit() {
    #[cfg(target_os = "linux")]
    {
        // Only Linux takes the hard limit as it is: on macOS it may be infinite, which setrlimit(2) refuses there.
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
            // Without it there are fewer connections and sockets; nothing else changes.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    }
}

/// The number of file descriptors that a service has before it binds to any address: the standard streams, its runtime,
/// signals, and one for messages to systemd.
pub(crate) const OWN_DESCRIPTORS: u64 = 12;

/// The number of file descriptors for metrics: the listening socket, and some connections.
pub(crate) const OF_METRICS: u64 = 5;

/// Returns the most file descriptors that this process may have: the soft limit.
pub(crate) fn most_descriptors() -> u64 {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

/// Checks that a process may have this many file descriptors in all. `advice` is the remedy other than a higher limit.
///
/// # Errors
/// The failure names the number needed and the number allowed.
pub(crate) fn require_descriptors(needed: u64, advice: &str) -> Result<(), Failure> {
    let allowed = most_descriptors();
    if allowed >= needed {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{needed} file descriptors are needed and {allowed} allowed; raise the limit (ulimit -n, LimitNOFILE= of systemd); {advice}"
    )))
}

/// Returns metrics of the build and the process in the text format of Prometheus. Values that the system does not offer are
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

/// Appends a sample of a metric with its labels in braces, if it has a value.
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
    // The name may contain spaces and parentheses, so fields count from the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

/// Returns the resident memory in bytes; the system reports it in units of 1024 bytes (proc_pid_status(5)).
fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// Returns the number of open file descriptors. One of them is the directory that is being read.
fn open_descriptors() -> Option<f64> {
    fs::read_dir("/proc/self/fd").ok().map(|open| open.count().saturating_sub(1) as f64)
}

/// Returns the soft limit on file descriptors (proc_pid_limits(5)).
fn max_descriptors() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    // The soft limit is the first number after the name, and the hard one the second.
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
    fn metrics_of_the_process_have_the_units_in_their_names() {
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
