//! `coapace emulate`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use coapace_scenario::Scenario;
use coapace_wire::emulation::{
    Capture, Emulation, EmulationCounts, EmulationError, EmulationView, Tunnel, take_privileges,
};
use coapace_wire::{Program, Readiness, shell};
use indicatif::ProgressBar;
use tokio::runtime::Builder;

use super::device::no_runtime;
use crate::addresses::first;
use crate::arguments::{Arguments, Emulate};
use crate::draft::Draft;
use crate::exporter::{Exporter, MetricsSource};
use crate::failure::INTERRUPTED;
use crate::shown::{complain, remark};
use crate::{Failure, interrupt, process, progress};

/// The receiver of copies of an emulation's packets: a capture, or nothing.
type CaptureTap = Option<Capture<BufWriter<File>>>;

/// The exit code if the command was still running after `--duration`, as with timeout(1).
const TIMED_OUT: u8 = 124;

pub(crate) fn emulate(arguments: &Arguments, emulate: &Emulate) -> Result<(), Failure> {
    let scenario = Scenario::load(&emulate.scenario, &emulate.set)?;
    // Each source of a relay takes a socket towards the server.
    process::raise_descriptor_limit();
    let emulation = Emulation::new(&scenario, emulate.seed).sources(emulate.sources as usize);
    match (&emulate.listen, &emulate.to) {
        (Some(listen), Some(to)) => relay(arguments, emulate, &scenario, emulation, (listen, to)),
        _ if emulate.tun || emulate.server.is_some() || !emulate.command.is_empty() => {
            tunnel(arguments, emulate, &scenario, emulation)
        }
        _ => Err(Failure::Usage(
            "emulate needs --listen and --to for datagrams, or a COMMAND after -- (or --tun) for programs"
                .to_owned(),
        )),
    }
}

/// Relays UDP until it is interrupted, or for `--duration`.
fn relay(
    arguments: &Arguments,
    emulate: &Emulate,
    scenario: &Scenario,
    emulation: Emulation<'_>,
    (listen, to): (&str, &str),
) -> Result<(), Failure> {
    let (listen, to) = (first("--listen", listen)?, first("--to", to)?);
    // The capture's file is opened before the network is made, so that an error leaves nothing to undo.
    let record = Recording::open(emulate)?;
    let exporter = emulate.metrics.as_deref().map(Exporter::bind).transpose()?;
    // From here on Ctrl-C ends the emulation and not the process.
    let stop = interrupt::watch();
    let relay = emulation.relay(listen, to, record.tap(scenario)?).map_err(failed)?;
    let mut out = io::stdout().lock();
    writeln!(out, "coap://{}", relay.local_addr())?;
    if let Some(exporter) = &exporter {
        writeln!(out, "{}", exporter.uri())?;
    }
    out.flush()?;
    drop(out);
    // Another thread serves the metrics, so a slow reader does not delay packets.
    let metrics = serve_metrics(exporter, relay.watch())?;
    let mut teller = Teller::new(arguments.quiet);
    let end = emulate.duration.map(|duration| Instant::now() + duration);
    while !stop.load(Ordering::Relaxed) && !relay.has_ended() && end.is_none_or(|end| Instant::now() < end) {
        thread::sleep(Duration::from_millis(50));
        teller.tell(&relay.counts());
    }
    teller.finish();
    drop(metrics);
    let (counts, tap) = relay.stop().map_err(failed)?;
    // The counters are printed before a failure of the capture is reported.
    let recorded = record.finish(tap);
    let mut out = io::stdout().lock();
    let printed = counts.summary().iter().try_for_each(|line| writeln!(out, "{line}"));
    counts.complaints().iter().for_each(|line| complain(line));
    recorded?;
    Ok(printed?)
}

/// Carries IP packets between two namespaces until the command in them ends, an interruption comes, or `--duration` has passed.
fn tunnel(
    arguments: &Arguments,
    emulate: &Emulate,
    scenario: &Scenario,
    emulation: Emulation<'_>,
) -> Result<(), Failure> {
    let record = Recording::open(emulate)?;
    let exporter = emulate.metrics.as_deref().map(Exporter::bind).transpose()?;
    // Threads begin after this line only.
    take_privileges().map_err(failed)?;
    let stop = interrupt::watch();
    let tunnel = emulation.tunnel(record.tap(scenario)?).map_err(failed)?;
    let metrics = serve_metrics(exporter, tunnel.running().watch())?;
    let settings = |command: &mut Command| {
        command
            .env("COAPACE_CLIENT", tunnel.client_address(1).to_string())
            .env("COAPACE_CLIENTS", tunnel.clients_network())
            .env("COAPACE_SERVER", tunnel.server_address(1).to_string());
    };
    let (client, server) = (tunnel.client_address(1), tunnel.server_address(1));
    remark(
        arguments,
        &format!(
            "address of the client: {client} (all of {} are local); address of the server: {server}",
            tunnel.clients_network()
        ),
    );
    let mut serving = None;
    if let Some(line) = &emulate.server {
        let mut command = shell(line);
        settings(&mut command);
        // The standard output belongs to the command.
        command.stdout(io::stderr());
        // In the background, the server does not get the Ctrl-C of the terminal: it ends after the clients.
        let mut program = Program::behind(command, |command| tunnel.server().start(command))
            .map_err(|error| Failure::Io("cannot start the server".to_owned(), error))?;
        await_server(&tunnel, &mut program, stop)?;
        serving = Some(program);
    }
    let mut program = None;
    if let Some((name, rest)) = emulate.command.split_first() {
        let mut command = Command::new(name);
        command.args(rest);
        settings(&mut command);
        let started = Program::in_front(command, |command| tunnel.clients().start(command));
        program =
            Some(started.map_err(|error| Failure::Io(format!("cannot run {}", name.display()), error))?);
    } else {
        for (side, name) in [(tunnel.clients(), "clients"), (tunnel.server(), "server")] {
            remark(
                arguments,
                &format!("to run a command in the network of the {name}: {}", entering(&side.file())),
            );
        }
    }
    let mut code = None;
    // A program on the terminal has it for itself.
    let mut teller = Teller::new(arguments.quiet || program.is_some());
    let end = emulate.duration.map(|duration| Instant::now() + duration);
    while !stop.load(Ordering::Relaxed) && code.is_none() && end.is_none_or(|end| Instant::now() < end) {
        if tunnel.running().has_ended() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
        teller.tell(&tunnel.running().counts());
        if let Some(program) = &mut program {
            code =
                program.ended().map_err(|error| Failure::Io("cannot wait for COMMAND".to_owned(), error))?;
        }
    }
    teller.finish();
    // Ending a program takes up to three seconds; both have them.
    program.into_iter().chain(serving).for_each(|mut program| program.stop());
    drop(metrics);
    let (counts, tap) = tunnel.stop().map_err(failed)?;
    let recorded = record.finish(tap);
    counts.summary().iter().for_each(|line| remark(arguments, line));
    counts.complaints().iter().for_each(|line| complain(line));
    recorded?;
    match code {
        // The order matters: a program that has ended gives its code even if Ctrl-C came at the same moment.
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Ended(code)),
        None if emulate.command.is_empty() => Ok(()),
        None if stop.load(Ordering::Relaxed) => Err(Failure::Ended(INTERRUPTED)),
        None => Err(Failure::Ended(TIMED_OUT)),
    }
}

/// Waits until a program listens in the server's namespace, for five seconds at most.
fn await_server(
    tunnel: &Tunnel<CaptureTap>,
    program: &mut Program,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let failed = |error| Failure::Io("cannot check whether the server listens".to_owned(), error);
    let listens = || Ok(stop.load(Ordering::Relaxed) || tunnel.server().listens()?);
    match program.wait_until(Duration::from_secs(5), listens).map_err(failed)? {
        Readiness::Ready => Ok(()),
        Readiness::Ended(code) => {
            Err(Failure::Input(format!("the server ended at once, with exit code {code}")))
        }
        Readiness::Late => {
            // The server may only be slow, so COMMAND starts anyway.
            complain("the server does not listen after five seconds; going on anyway");
            Ok(())
        }
    }
}

/// Returns a command line that runs COMMAND in the network namespace with this file.
fn entering(file: &str) -> String {
    if is_root_outside() {
        format!("nsenter --net={file} COMMAND")
    } else {
        // An ordinary user may enter the network namespace only together with the user namespace that owns it.
        let pid = std::process::id();
        format!("nsenter --target {pid} --user --preserve-credentials --net={file} COMMAND")
    }
}

/// Returns whether the process is in the initial user namespace, where root is the system's root.
fn is_root_outside() -> bool {
    fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.contains("4294967295"))
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn failed(error: EmulationError) -> Failure {
    match error {
        // Another scenario helps here, so these are faults of the command line.
        EmulationError::Mesh | EmulationError::Circle(_) => Failure::Usage(error.to_string()),
        _ => Failure::Network(error.to_string()),
    }
}

/// Serves the counters over HTTP, if there is an exporter, on a runtime of its own. Dropping this runtime ends the
/// service.
fn serve_metrics(
    exporter: Option<Exporter>,
    watch: EmulationView,
) -> Result<Option<tokio::runtime::Runtime>, Failure> {
    let Some(exporter) = exporter else { return Ok(None) };
    // The main thread sleeps in its loop, so the metrics need a thread of their own.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(no_runtime)?;
    runtime.spawn(exporter.run(watch));
    Ok(Some(runtime))
}

impl MetricsSource for EmulationView {
    fn exposition(&self) -> String {
        self.counts().exposition()
    }

    fn is_closing(&self) -> bool {
        false
    }
}

/// The file of an emulation's capture while it is written; `None` if no capture was asked for.
struct Recording(Option<Draft>);

impl Recording {
    fn open(emulate: &Emulate) -> Result<Self, Failure> {
        emulate.pcap.as_deref().map(Draft::create).transpose().map(Self)
    }

    fn tap(&self, scenario: &Scenario) -> Result<CaptureTap, Failure> {
        let writer = self.0.as_ref().map(Draft::writer).transpose()?;
        Ok(writer.map(|writer| Capture::new(writer, scenario)))
    }

    fn finish(self, tap: CaptureTap) -> Result<(), Failure> {
        let Some((draft, capture)) = self.0.zip(tap) else { return Ok(()) };
        capture.finish().map_err(|error| draft.cannot_write(error))?;
        // A capture is whole whenever the emulation ends, also by Ctrl-C.
        draft.put(true).map(drop)
    }
}

/// Prints a line of counters to a terminal, and a warning when an overload begins.
struct Teller {
    line: ProgressBar,
    is_overloaded: bool,
}

impl Teller {
    fn new(quiet: bool) -> Self {
        Self { line: progress::line(quiet), is_overloaded: false }
    }

    fn tell(&mut self, counts: &EmulationCounts) {
        let late = counts.lateness(0.99).as_secs_f64() * 1e3;
        self.line.set_message(format!(
            "{} sources, {} packets: {} arrived, {} dropped, {} lost; 99 % left within {late:.2} ms",
            counts.sources, counts.entered, counts.arrived, counts.dropped, counts.lost
        ));
        // One warning is enough: the counters at the end name the overload again.
        if counts.is_overloaded() && !self.is_overloaded {
            self.is_overloaded = true;
            self.line.suspend(|| {
                counts
                    .complaints()
                    .iter()
                    .filter(|line| line.contains("overload"))
                    .for_each(|line| complain(line));
            });
        }
    }

    fn finish(self) {
        self.line.finish_and_clear();
    }
}
