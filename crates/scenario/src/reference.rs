//! The reference page of the keys, made from their declarations.

use std::fmt::Write;

use coapace_sim::Reordering;
use coapace_sim::mesh::{DutyCycle, LowpanConfig, MacConfig, Propagation, RadioConfig};
use coapace_sim::mobility::Movement;
use serde_json::{Value, json};

use crate::file::{Defaults, File};
use crate::flows::Flow;
use crate::hops::{Burst, Hop};
use crate::hosts::{Clients, Server};
use crate::mesh::{Mesh, Mobility, Topology};
use crate::network::{NetworkTable, Tcp};
use crate::patterns;
use crate::queues::Queue;
use crate::routing::Routing;
use crate::scenario::Scenario;
use crate::schema::document::joined;
use crate::schema::json::object;
use crate::schema::kind::KeyEntry;
use crate::schema::preset::Preset;
use crate::schema::scalar::{PERCENTAGE, Scalar, TIME};
use crate::schema::table::Keys;
use crate::schema::words::TaggedTable;
use crate::transfers::Transfer;
use crate::workload::Workload;

const HEAD: &str = "\
# Scenarios

<!-- Generated from crates/scenario/src. Rewrite with: BLESS=1 cargo test -p coapace-scenario --test scenario -->

A scenario is a TOML file: a network, a workload, and the names by which both are varied. `coapace run` takes the name of
a built-in scenario or the path of a file. A key that is not on this page is an error.

Times, rates and shares carry their unit, with or without a blank before it: `\"200 ms\"`, `\"200ms\"`, `\"60 kbit/s\"`, `\"2 %\"`. Units of
time are us, ms, s, min and h. A time is at most 24 h; without a unit it is refused, but for 0. A percentage is from 0 % to 100 %; without the sign it is a
fraction: `0.02` (a bare `1` is refused, for it might mean 1 %). Sizes are bare numbers where the key's name says bytes, and may carry a unit too: `1410000` or `\"1.41 MB\"`. Parameters of
mechanisms take times in the same way. Flags of the command do, too, and read a number without a unit as seconds.

The smallest scenario there is:

```toml
title = \"A wire\"
summary = \"Three clients and a server, nothing lost, nothing late.\"
source = \"illustrative\"

[clients]
count = 3

[workload]
kind = \"continuous\"

[[network.up]]
name = \"wire\"

[[network.down]]
name = \"wire\"
```

In VS Code, the extension Even Better TOML completes and checks keys by a JSON Schema: `coapace list scenarios --schema > scenario.schema.json`,
and the first line of the scenario is `#:schema ./scenario.schema.json`. The [same file](scenario.schema.json) is beside this page.

An error is one line that begins with its place:

```text
scenarios/x.toml:5: unknown key `clinets`; did you mean `clients`?
--set errors=meduim: `errors` must be \"none\" or \"low\" or \"medium\" or \"high\", not `meduim`; did you mean `medium`?
```

## Built-in scenarios

";

const KNOBS: &str = "\
## Settings and knobs

`--set KEY=VALUE` changes one key, `KEY` being its dotted path. A hop is addressed by its name:
`--set 'network.up.radio.delay=300 ms'`. A value is written as in the file, but text needs no quotes. Settings are made in the
order given. The file must be right by itself, and the result of the settings is checked in the same way.

`coapace run` takes several values of a setting with commas between them, `--set clients=10,50,100 --set errors=none,high`, and runs
every combination. A comma within quotes, brackets or braces belongs to a value: `--set network.mesh.topology.sinks=[0,1]`.

`[knobs]` gives short names to settings. A knob is a path, a list of paths that are set together, or a table of choices:

```toml
[knobs]
clients = \"clients.count\"
buffer = [\"network.up.radio.buffer_bytes\", \"network.down.radio.buffer_bytes\"]

[knobs.errors]
none = { \"network.up.radio.loss\" = \"0 %\" }
low = { \"network.up.radio.loss\" = \"2 %\" }
```

Every row of the results has the value of every knob. A knob with choices has the choice which would change
nothing, or `custom`.

Names of knobs, choices and hops are at most 32 lower-case letters, digits, `-` and `_`, a letter first.

## Hash

Every row of the results carries the hash of its scenario: FNV-1a, 64 bits, of all keys that shape a run (`clients`,
`server`, `workload`, `network`, `tcp`) with their effective values in canonical form. Titles, comments, knobs, `[defaults]`
and the way a value is written do not change it; names of hops do, because the random numbers of a hop belong to its name.
";

/// Returns the page `docs/scenarios.md`: every key with its kind, its default and its meaning, and the built-in scenarios.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| name | what it is | source | knobs |\n|---|---|---|---|\n");
    for builtin in Scenario::builtins() {
        // Tests load every built-in scenario, so none is left out here.
        if let Ok(scenario) = Scenario::load(builtin.name, &[]) {
            let knobs: Vec<_> =
                scenario.knob_values().iter().map(|(name, value)| format!("`{name}={value}`")).collect();
            row(
                &mut page,
                &[&format!("`{}`", builtin.name), &scenario.summary, &scenario.source, &knobs.join(" ")],
            );
        }
    }

    page.push_str("\n## The file\n\n");
    table(&mut page, "", &File::keys());
    section::<Clients>(&mut page, "[clients]", "clients");
    section::<Server>(&mut page, "[server]", "server");
    section::<Workload>(&mut page, "[workload]", "workload");
    section::<Flow>(&mut page, "[[workload.flows]]", "workload.flows.FLOW");
    page.push_str("\nPatterns:\n\n");
    for pattern in patterns::PATTERNS {
        // Writing to a string does not fail.
        let _ = writeln!(page, "* `{}`: {}.", pattern.name, pattern.summary);
    }
    section::<Transfer>(&mut page, "[[workload.transfers]]", "workload.transfers.TRANSFER");
    section::<NetworkTable>(&mut page, "[network]", "network");
    section::<Hop>(&mut page, "[[network.up]], [[network.down]]", "network.up.HOP");
    // A table within a key follows the table that has the key, so that a reader finds it next.
    section::<Burst>(&mut page, "loss = { … }", "network.up.HOP.loss");
    kinds::<Queue>(&mut page, "network.up.HOP.queue", |_| true);
    section::<Reordering>(&mut page, "reordering = { … }", "network.up.HOP.reordering");
    section::<Mesh>(&mut page, "[network.mesh]", "network.mesh");
    section::<Topology>(&mut page, "[network.mesh.topology]", "network.mesh.topology");
    section::<RadioConfig>(&mut page, "[network.mesh.radio]", "network.mesh.radio");
    kinds::<Propagation>(&mut page, "network.mesh.radio.propagation", |_| true);
    section::<Preset<MacConfig>>(&mut page, "[network.mesh.mac]", "network.mesh.mac");
    kinds::<DutyCycle>(&mut page, "network.mesh.mac.duty_cycle", |_| true);
    section::<Preset<LowpanConfig>>(&mut page, "[network.mesh.lowpan]", "network.mesh.lowpan");
    kinds::<Routing>(&mut page, "network.mesh.routing", |_| true);
    section::<Movement>(&mut page, "[network.mesh.mobility]", "network.mesh.mobility");
    // The keys that all models share are in the section before.
    kinds::<Mobility>(&mut page, "network.mesh.mobility", |key| !Movement::has(key));
    section::<Tcp>(&mut page, "[tcp]", "tcp");
    section::<Defaults>(&mut page, "[defaults]", "defaults");
    page.push('\n');
    page.push_str(KNOBS);
    page
}

/// Returns `docs/scenario.schema.json`: the keys of a scenario file as a JSON Schema (draft 7), for editors. A file that the
/// schema accepts may still be refused, because the schema does not compare keys with each other and does not bound numbers
/// with a unit.
pub fn json_schema() -> String {
    let mut schema = object::<File>();
    // A mesh counts its clients and has no hops; everything else must say both.
    let without = |table: &mut Value, names: &[&str]| {
        if let Some(required) = table["required"].as_array_mut() {
            required.retain(|name| !names.iter().any(|own| name == own));
        }
    };
    without(&mut schema, &["clients"]);
    without(&mut schema["properties"]["clients"], &["count"]);
    without(&mut schema["properties"]["network"], &["up", "down"]);
    let is_mesh = json!({ "properties": { "network": { "required": ["mesh"], "properties": { "mesh": { "type": "object" } } } } });
    let hops = json!({ "required": ["up", "down"], "properties": { "up": { "minItems": 1 }, "down": { "minItems": 1 } } });
    let others = json!({ "required": ["clients"], "properties": { "clients": { "required": ["count"] }, "network": hops } });
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "A scenario of Coapace".into();
    schema["if"] = is_mesh;
    schema["else"] = others;
    format!("{schema:#}\n")
}

fn section<T: Keys>(page: &mut String, title: &str, path: &str) {
    titled(page, title, T::DOC, path, &T::keys());
}

/// Writes a section for each kind of the table at `path`, with the keys for which `is_own` returns true. A kind without
/// such keys gets no section.
fn kinds<T: TaggedTable>(page: &mut String, path: &str, is_own: fn(&str) -> bool) {
    let name = path.rsplit('.').next().unwrap_or(path);
    for word in T::WORDS {
        let (doc, mut keys) = T::table_of(word);
        keys.retain(|key| is_own(key.name));
        // A kind without keys of its own needs no section.
        if !keys.is_empty() {
            titled(page, &format!("{name} = {{ kind = \"{word}\", … }}"), doc, path, &keys);
        }
    }
}

fn titled(page: &mut String, title: &str, doc: &str, path: &str, keys: &[KeyEntry]) {
    let _ = write!(page, "\n## `{title}`\n\n{doc}\n\n");
    table(page, path, keys);
}

fn table(page: &mut String, path: &str, keys: &[KeyEntry]) {
    page.push_str("| key | accepts | default | meaning |\n|---|---|---|---|\n");
    for key in keys {
        let default = match key.default.as_deref() {
            // An empty list of tables writes no line.
            Some("") => "none".to_owned(),
            Some(default) => format!("`{default}`"),
            None if key.is_required() => "required".to_owned(),
            // The table may be missing, because each of its keys has a default.
            None => "as its keys".to_owned(),
        };
        row(page, &[&format!("`{}`", joined(path, key.name)), &short(&key.accepts), &default, &key.doc]);
    }
}

/// Returns a description of accepted values, in which the head of the page explains the two kinds that most keys have.
fn short(accepts: &str) -> String {
    accepts.replace(&Scalar::accepts(&TIME), "a time").replace(&Scalar::accepts(&PERCENTAGE), "a percentage")
}

fn row(page: &mut String, cells: &[&str]) {
    // A bare `|` would end the cell of the table.
    let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}
