//! Logs of commands: one line per event on standard error.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Registry, fmt as lines};

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Time, level, target, message and fields
    Text,
    /// A JSON object on each line
    Json,
}

/// Logs the events of a server: its start, its end and errors. `verbose` 1 adds each request and handshake, 2 also
/// observers. `quiet` logs errors only.
pub(crate) fn of_server(form: Form, verbose: u8, quiet: bool) {
    let (own, net) = match verbose {
        // `coapace_net` logs each request at INFO, which only -v shows.
        _ if quiet => (LevelFilter::ERROR, LevelFilter::ERROR),
        0 => (LevelFilter::INFO, LevelFilter::WARN),
        1 => (LevelFilter::INFO, LevelFilter::INFO),
        2 => (LevelFilter::DEBUG, LevelFilter::DEBUG),
        _ => (LevelFilter::TRACE, LevelFilter::TRACE),
    };
    let journal = is_journal();
    let layer = lines::layer().with_writer(io::stderr).log_internal_errors(false);
    install(
        match (form, journal) {
            (Form::Text, false) => layer.boxed(),
            // The journal adds time and level itself.
            (Form::Text, true) => layer.without_time().with_level(false).map_event_format(Prefixed).boxed(),
            (Form::Json, false) => layer.json().flatten_event(true).boxed(),
            (Form::Json, true) => {
                let layer = layer.json().flatten_event(true).without_time();
                layer.map_event_format(Prefixed).boxed()
            }
        },
        own,
        net,
    );
}

/// Logs the errors of a client, in lines without time and level. `verbose` 2 adds handshakes.
pub(crate) fn of_client(verbose: u8, quiet: bool) {
    let level = match verbose {
        _ if quiet => LevelFilter::ERROR,
        0 | 1 => LevelFilter::WARN,
        2 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let layer = lines::layer().with_writer(io::stderr).log_internal_errors(false);
    install(layer.without_time().with_level(false).with_target(false).boxed(), level, level);
}

fn install(layer: Box<dyn Layer<Registry> + Send + Sync>, own: LevelFilter, net: LevelFilter) {
    // Other crates log much that is of no use to operators.
    let targets = Targets::new().with_target("coapace", own).with_target("coapace_net", net);
    // This fails only if a subscriber is set already, and this is the first.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer).with(targets));
}

/// Returns whether standard error goes to systemd's journal. JOURNAL_STREAM has the device and inode of the
/// journal's stream (systemd.exec(5)).
fn is_journal() -> bool {
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else { return false };
    // Standard error may be redirected to a file while the variable is still set, so the file itself is compared.
    let Ok(own) = fs::metadata("/proc/self/fd/2") else { return false };
    stream == format!("{}:{}", own.dev(), own.ino())
}

/// Prefixes an event with its priority, which systemd's journal reads (sd-daemon(3)).
struct Prefixed<F>(F);

impl<S, N, F> FormatEvent<S, N> for Prefixed<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let priority = match *event.metadata().level() {
            // syslog(3) defines the numbers: 3 error, 4 warning, 6 informational, 7 debug.
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{priority}>")?;
        self.0.format_event(context, writer, event)
    }
}
