//! A progress bar for people; nothing for pipes, files and `--quiet`.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts `runs`.
pub(crate) fn bar(runs: usize, quiet: bool) -> ProgressBar {
    if quiet || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left  {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
