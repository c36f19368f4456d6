//! Checks of a whole scenario. They need the positions of the mesh's nodes.

use std::path::Path;

use coapace_sim::Time;
use coapace_sim::mesh::{Mesh, Propagation};

use crate::file::File;
use crate::flows::{Flow, Side};
use crate::places::{Places, found};
use crate::schema::document::{Item, TomlValue, quoted};
use crate::schema::kind::Lines;
use crate::schema::table::Misfit;
use crate::transfers::Protocol;

/// The dotted path of the mesh's table in a scenario file.
const MESH: &str = "network.mesh";

/// The maximum number of messages that a flow may make in a run. More would take days to simulate.
const MOST_MESSAGES: u128 = 1_000_000_000;

/// Finds the positions of the nodes of a mesh, counts its clients, and checks the keys that depend on positions or on
/// the number of clients. Returns `None` for a network of hops.
pub(crate) fn place(file: &mut File, item: &Item, folder: Option<&Path>) -> Result<Option<Places>, Misfit> {
    // Without a duration this is 0 s, which suits nodes that stay. Movements of a model are refused below in that case.
    let end = Time::ZERO + file.workload.duration.unwrap_or_default();
    let places = file.network.mesh.as_ref().map(|mesh| Places::of(mesh, folder, end)).transpose();
    let places = places.map_err(|(key, problem)| Misfit::new(format!("{MESH}.{key}"), problem))?;
    if let (Some(mesh), Some(disk)) =
        (&mut file.network.mesh, places.as_ref().and_then(|places| places.medium))
    {
        // A key of the scenario takes precedence over the file of its topology.
        let path = ["network", "mesh", "radio", "propagation"];
        if path.into_iter().try_fold(item, |table, key| table.get(key)).is_none() {
            mesh.radio.propagation = Propagation::UnitDisk(disk);
        }
    }
    if let (Some(mesh), Some(places)) = (&file.network.mesh, &places) {
        // Checked with the propagation in force, which the file of the topology may just have replaced.
        let has_room = Mesh::has_room(&places.layout.places, mesh.radio.propagation);
        let problem = "reaches too far: more than 50 million pairs of nodes may hear each other";
        Misfit::unless(has_room, format!("{MESH}.radio.propagation"), problem)?;
        let ends = file.workload.duration.is_some() || !places.are_drawn();
        let problem = "needs a `workload.duration`, until which nodes move";
        Misfit::unless(ends, format!("{MESH}.mobility.kind"), problem)?;
    }
    // The places decide how many sinks and clients a mesh has. A number in the file may only repeat the count.
    let mut sinks = file.server.count;
    if let Some(Places { layout, .. }) = &places {
        sinks = layout.sinks.len() as u32;
        // A border router that is a sink, too, must not be subtracted twice.
        let relays = u32::from(!layout.sinks.contains(&layout.root));
        // Does not underflow: `Places::of` refuses a mesh without a client.
        let clients = layout.places.len() as u32 - sinks - relays;
        // The file's own number counts, not the 1 that a mesh gets before its clients are counted.
        let is_said = item.get("clients").and_then(|clients| clients.get("count")).is_some();
        let problem = format!("must be left out in a mesh, which has {clients} clients here");
        Misfit::unless(!is_said || file.clients.count == clients, "clients.count", problem)?;
        file.clients.count = clients;
    }
    let clients = file.clients.count;
    // From here on the number of clients is known, also in a mesh.
    for (transfer, own) in file.workload.transfers.iter().zip(file.workload.transferring(clients)) {
        let problem = format!("leaves this transfer no client: there are {clients} in all");
        Misfit::unless(!own.is_empty(), transfer.path("clients"), problem)?;
        let problem = "must not be \"tcp\" in a mesh: TCP is simulated over hops only";
        let is_carried = places.is_none() || transfer.protocol != Protocol::Tcp;
        Misfit::unless(is_carried, transfer.path("protocol"), problem)?;
    }
    for flow in &file.workload.flows {
        let layout = places.as_ref().map(|places| &places.layout);
        let problem = format!("must be below the number of sinks, {sinks}");
        Misfit::unless(flow.to.is_none_or(|to| to < sinks), flow.path("to"), problem)?;
        let problem = "must be a number without a mesh: hops have no places";
        Misfit::unless(layout.is_some() || flow.to.is_some(), flow.path("to"), problem)?;
        let problem = "must be \"all\" without a mesh: hops have no sides";
        Misfit::unless(layout.is_some() || flow.from == Side::All, flow.path("from"), problem)?;
        // Messages are kept until the run ends, so their number is bounded before it begins.
        let bits = u128::from(flow.sizes(file.clients.uri_path_bytes()).1) * 8;
        let seconds = u128::from(file.workload.duration.unwrap_or_default().as_micros() / 1_000_000);
        // A flow with an interval needs no bound here: `flow_fits` demands 1 ms or more.
        let messages = u128::from(flow.rate.unwrap_or(0)) * seconds / bits.max(1);
        let problem = format!("makes {messages} messages; a flow may make at most {MOST_MESSAGES}");
        Misfit::unless(messages <= MOST_MESSAGES, flow.path("rate"), problem)?;
        let leaves_none = |flow: &Flow| flow.sinks(file.clients.count, layout).iter().all(Option::is_none);
        if leaves_none(flow) {
            // With a share of 1 only the side decides, so this try shows which of the two keys is wrong.
            let all = Flow { share: 1.0, ..flow.clone() };
            let cause = if leaves_none(&all) { "from" } else { "share" };
            return Err(Misfit::new(flow.path(cause), "leaves no client that sends the flow"));
        }
    }
    Ok(places)
}

/// Makes the file names in the keys of a mesh absolute, so that they name the same files from any working directory.
pub(crate) fn name_files(item: &mut Item, folder: Option<&Path>, places: Option<&Places>) {
    for (key, _) in places.map_or(&[][..], |places| &places.files) {
        let path = format!("{MESH}.{key}");
        let Item { at, value: TomlValue::Text(name) } = item.nearest_to(&path) else { continue };
        // Without a working directory the name stays relative, which is still right on this machine.
        let Ok(absolute) = std::path::absolute(found(name, folder)) else { continue };
        // A path that is not UTF-8 cannot be written in TOML.
        if let Some(name) = absolute.to_str() {
            let named = Item { at: *at, value: TomlValue::Text(name.to_owned()) };
            // The member exists, so this does not fail.
            let _ = item.assign(&path, named);
        }
    }
}

/// Replaces each file name in `lines` by a hash of the file's content, because a run depends on the content alone.
pub(crate) fn with_contents(mut lines: Lines, places: Option<&Places>) -> Lines {
    for (key, hash) in places.map_or(&[][..], |places| &places.files) {
        let path = format!("{MESH}.{key}");
        if let Some((_, text)) = lines.iter_mut().find(|(known, _)| *known == path) {
            *text = quoted(&hash.to_string());
        }
    }
    lines
}
