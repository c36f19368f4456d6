//! A progress bar on terminals; no output into pipes and files, or with `--quiet`.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Returns a bar that counts `runs`.
pub(crate) fn bar(runs: usize, quiet: bool) -> ProgressBar {
    drawn(runs as u64, "{wide_bar} {pos}/{len} runs, {eta} left  {msg}", quiet)
}

/// Returns a progress bar over a duration, in milliseconds.
pub(crate) fn milliseconds(time: Duration, quiet: bool) -> ProgressBar {
    drawn(time.as_millis() as u64, "{wide_bar} {eta} left  {msg}", quiet)
}

/// Returns a progress bar over the bytes of a block-wise transfer. Its length is set later.
pub(crate) fn bytes(quiet: bool) -> ProgressBar {
    drawn(0, "{wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left", quiet)
}

/// Returns a status line for a command that runs until it is interrupted.
pub(crate) fn line(quiet: bool) -> ProgressBar {
    drawn(0, "{elapsed}  {msg}", quiet)
}

fn drawn(length: u64, template: &str, quiet: bool) -> ProgressBar {
    if quiet || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    // Simulated runs may end thousands of times a second, so the bar is drawn ten times a second at most.
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template(template);
    // A template of this file is never invalid, and a plain bar is better than a panic.
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
