//! Generates `docs/mechanisms.md` from the registry and `firmware/report.csv`, and checks that it is up to date. Checks the
//! table of mechanisms in `README.md`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use coapace_control::{BULK, Entry, Mechanism, REGISTRY};

const BLESS: &str = "BLESS=1 cargo test -p coapace-control --test mechanisms";

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The cost of a mechanism on a Cortex-M3: a row of `firmware/report.csv`, by the names of the columns.
struct Cost(BTreeMap<String, String>);

impl Cost {
    fn get(&self, column: &str) -> &str {
        self.0.get(column).unwrap_or_else(|| panic!("firmware/report.csv has no column {column}"))
    }

    /// Returns the deepest stack of any call, in bytes.
    fn stack(&self) -> u32 {
        let bytes = self.0.iter().filter(|(column, _)| column.ends_with("_stack_bytes"));
        bytes.map(|(_, bytes)| bytes.parse().unwrap()).max().unwrap()
    }

    /// Returns the instructions of a call, median and most.
    fn instructions(&self, call: &str) -> String {
        let count = |which| self.get(&format!("{call}_{which}_instructions"));
        format!("{} / {}", count("median"), count("max"))
    }
}

/// Returns the tools that made the report, and the costs by the names of mechanisms.
fn report() -> (String, BTreeMap<String, Cost>) {
    let text = fs::read_to_string(repository("firmware/report.csv")).unwrap();
    let mut lines = text.lines();
    let tools = lines.next().unwrap().trim_start_matches("# ").to_owned();
    let columns: Vec<_> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let costs = lines.map(|line| {
        let fields: Vec<_> = line.split(',').map(str::to_owned).collect();
        assert_eq!(fields.len(), columns.len(), "{line}");
        (fields[0].clone(), Cost(columns.iter().cloned().zip(fields).collect()))
    });
    (tools, costs.collect())
}

fn overview(page: &mut String, costs: &BTreeMap<String, Cost>) {
    *page += "| name | source | RAM, bytes a destination | flash, bytes | stack, bytes | `on_start`, instructions | \
        `on_end`, instructions |\n|---|---|--:|--:|--:|--:|--:|\n";
    for entry in REGISTRY {
        let cost = &costs[entry.name];
        writeln!(
            page,
            "| [`{name}`](#{name}) | {} | {} | {} | {} | {} | {} |",
            entry.source,
            cost.get("state_bytes"),
            cost.get("flash_bytes"),
            cost.stack(),
            cost.instructions("on_start"),
            cost.instructions("on_end"),
            name = entry.name,
        )
        .unwrap();
    }
}

/// Returns the first entry of the same kind. Its section lists the parameters of all entries of that kind.
fn first_of_kind(entry: &Entry) -> &'static Entry {
    let mut all = REGISTRY.iter().chain(BULK);
    all.find(|other| other.mechanism.kind() == entry.mechanism.kind()).unwrap()
}

fn value(entry: &Entry, parameter: &str) -> String {
    entry.mechanism.get(parameter).unwrap().to_string()
}

fn parameters(page: &mut String, entry: &Entry) {
    let first = first_of_kind(entry);
    if first.name != entry.name {
        let differing = entry.mechanism.parameters().iter().map(|parameter| parameter.name);
        let differing: Vec<_> = differing
            .filter(|name| value(entry, name) != value(first, name))
            .map(|name| format!("`{name}={}`", value(entry, name)))
            .collect();
        write!(page, "Parameters and presets are the same as of [`{name}`](#{name})", name = first.name)
            .unwrap();
        writeln!(page, ", with {}.", differing.join(", ")).unwrap();
        return;
    }
    *page += "| parameter | value | takes | what it is |\n|---|---|---|---|\n";
    for parameter in entry.mechanism.parameters() {
        let (name, doc) = (parameter.name, parameter.doc);
        // The head of the page explains the two kinds that most parameters have.
        let kind = match parameter.kind {
            "a time above zero with its unit, such as 2s, 1.5s, 500ms or 800us" => "a time",
            "a number such as 1.5, or a fraction such as 3/2" => "a number",
            other => other,
        };
        writeln!(page, "| `{name}` | {} | {kind} | {doc} |", value(entry, name)).unwrap();
    }
    if !entry.mechanism.presets().is_empty() {
        *page += "\n| preset | meaning |\n|---|---|\n";
    }
    for preset in entry.mechanism.presets() {
        writeln!(page, "| `{}` | {} |", preset.name, preset.doc).unwrap();
    }
}

/// Writes a heading, the summary and the notes.
fn notes(page: &mut String, entry: &Entry, heading: &str) {
    let notes = entry.notes;
    let (first, rest) = entry.summary.split_at(1);
    writeln!(page, "\n{heading} {}\n\n{}{rest}.\n", entry.name, first.to_uppercase()).unwrap();
    writeln!(page, "* **Source:** {}. {}", entry.source, notes.status).unwrap();
    writeln!(page, "* **Use it when:** {}", notes.use_when).unwrap();
    writeln!(page, "* **Do not use it when:** {}", notes.avoid_when).unwrap();
    writeln!(page, "* **Unsafe:** {}", notes.hazards).unwrap();
}

fn section(page: &mut String, entry: &Entry, cost: &Cost) {
    notes(page, entry, "##");
    writeln!(
        page,
        "* **Costs:** bytes: {} of RAM a destination, {} of flash, {} of stack; instructions, median / most: \
         `on_start` {}, `on_retransmit` {}, `on_end` {}.\n",
        cost.get("state_bytes"),
        cost.get("flash_bytes"),
        cost.stack(),
        cost.instructions("on_start"),
        cost.instructions("on_retransmit"),
        cost.instructions("on_end"),
    )
    .unwrap();
    parameters(page, entry);
}

/// Writes the bulk mechanisms. What they cost on a Cortex-M3 is not in the report.
fn bulk(page: &mut String) {
    *page += "\n## Bulk\n\nBulk mechanisms say how many exchanges may be outstanding that carry one body (RFC 7959), when the next may \
        depart, and which are lost. They are chosen by `--bulk NAME`, beside a mechanism for single exchanges. Losses that \
        a later answer shows are repaired at once, without a timeout, except with `rfc9177`. `--bulk rtt-coap` works, too, because \
        `rtt-coap` says how many exchanges may be outstanding. Its losses wait for timeouts.\n";
    for entry in BULK {
        notes(page, entry, "###");
        // A state has a tag of a byte.
        writeln!(page, "* **RAM:** {} bytes a destination.\n", 1 + entry.mechanism.state_bytes()).unwrap();
        parameters(page, entry);
    }
}

fn page() -> String {
    let (tools, costs) = report();
    let exchange = costs["default"].get("exchange_bytes").to_owned();
    let mut page = format!(
        "# Mechanisms\n\n<!-- Generated from the registry and firmware/report.csv. Rewrite with: {BLESS} -->\n\n\
         The mechanisms that can be chosen by name, their costs, and their known hazards. Which of them takes from which at a \
         shared bottleneck is in [docs/coexistence.md](coexistence.md).\n\n\
         Costs were measured on a Cortex-M3: the C library with this mechanism alone and its parameters constants, made by {tools}. \
         RAM counts the byte that says whose state it is; an exchange under way takes {exchange} bytes more, whatever the \
         mechanism. Flash is all that an image grows by. Stack is the most of any call. Instructions, not cycles, are the \
         median and the most over the mechanism's vectors. \
         [How it is measured](decisions/0013-the-cost-of-a-mechanism-is-measured-on-an-emulated-cortex-m3.md); `firmware/report.csv` has every call.\n\n\
         In the tables of parameters, a time is above zero and has its unit, such as 2s, 1.5s, 500ms or 800us; a number is written like 1.5 or 3/2.\n\n"
    );
    overview(&mut page, &costs);
    for entry in REGISTRY {
        section(&mut page, entry, &costs[entry.name]);
    }
    bulk(&mut page);
    page
}

#[test]
fn the_page_of_mechanisms_is_up_to_date() {
    let (path, page) = (repository("docs/mechanisms.md"), page());
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "rewrite it: {BLESS}");
}

/// Checks the table of `README.md`. A row may have several mechanisms; `tcp` is none of the registry.
#[test]
fn the_readme_lists_every_mechanism_once() {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let (_, section) = readme.split_once("\n## Mechanisms\n").unwrap();
    let rows =
        section.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap_or_default().split(','));
    let mut listed: Vec<_> =
        names.map(|name| name.trim().trim_matches('`')).filter(|&name| name != "tcp").collect();
    let mut registered: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
    listed.sort_unstable();
    registered.sort_unstable();
    assert_eq!(listed, registered, "correct the table of README.md");
}

#[test]
fn every_note_on_a_mechanism_is_at_least_one_sentence() {
    for Entry { name, notes, .. } in REGISTRY.iter().chain(BULK) {
        for note in [notes.status, notes.use_when, notes.avoid_when, notes.hazards] {
            assert!(note.len() > 20 && note.ends_with('.') && !note.contains("  "), "{name}: {note:?}");
        }
    }
}

#[test]
fn every_mechanism_draws_random_timeouts_but_two_that_were_published_without_dither() {
    let undithered = REGISTRY.iter().filter(|entry| !entry.mechanism.dithers()).map(|entry| entry.name);
    assert_eq!(undithered.collect::<Vec<_>>(), ["linux-rto", "basic-rto"]);
    let parse = |text: &str| text.parse::<Mechanism>().unwrap();
    assert!(!parse("default:ack_random_factor=1").dithers());
    assert!(parse("basic-rto:ack_random_factor=3/2").dithers());
}
