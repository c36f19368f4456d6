//! Checks of a whole scenario that need the places of its mesh.

use std::path::Path;
use std::sync::Arc;

use coapace_sim::Time;
use coapace_sim::mesh::{Mesh, Propagation};

use crate::file::File;
use crate::flows::{Flow, Side};
use crate::places::{Places, found};
use crate::schema::document::{Item, Value, quoted};
use crate::schema::error::Fault;
use crate::schema::kind::Lines;

/// The path of the table of a mesh.
const MESH: &str = "network.mesh";

/// The most messages that a flow may make in a run. More would take days to simulate.
const MOST_MESSAGES: u128 = 1_000_000_000;

/// Finds the places of the nodes, counts the clients, and checks what depends on either.
pub(crate) fn place(
    file: &mut File,
    item: &Item,
    folder: Option<&Path>,
) -> Result<Option<Arc<Places>>, Fault> {
    let fault =
        |path: &str, problem: &str| Fault::new(item.nearest_to(path).at, format!("`{path}` {problem}"));
    let end = Time::ZERO + file.workload.duration.unwrap_or_default();
    let places = file.network.mesh.as_ref().map(|mesh| Places::of(mesh, folder, end)).transpose();
    let places = places.map_err(|(key, problem)| fault(&format!("{MESH}.{key}"), &problem))?;
    if let (Some(mesh), Some(disk)) =
        (&mut file.network.mesh, places.as_ref().and_then(|places| places.medium))
    {
        // A key of the scenario takes precedence over the file of its topology.
        let path = ["network", "mesh", "radio", "propagation"];
        if path.into_iter().try_fold(item, |table, key| table.get(key)).is_none() {
            mesh.radio.propagation = Propagation::UnitDisk(disk);
        }
    }
    if let (Some(mesh), Some(places)) = (&file.network.mesh, &places)
        && !Mesh::has_room(&places.layout.places, mesh.radio.propagation)
    {
        let path = format!("{MESH}.radio.propagation");
        return Err(fault(&path, "reaches too far: more than 50 million pairs of nodes may hear each other"));
    }
    if places.as_ref().is_some_and(Places::are_drawn) && file.workload.duration.is_none() {
        return Err(fault(
            "network.mesh.mobility.kind",
            "needs a `workload.duration`, until which nodes move",
        ));
    }
    let mut sinks = file.server.count;
    if let Some(Places { layout, .. }) = &places {
        sinks = layout.sinks.len() as u32;
        let relays = u32::from(!layout.sinks.contains(&layout.root));
        let clients = layout.places.len() as u32 - sinks - relays;
        let is_said = item.get("clients").and_then(|clients| clients.get("count")).is_some();
        if is_said && file.clients.count != clients {
            let problem = format!("must be left out in a mesh, which has {clients} clients here");
            return Err(fault("clients.count", &problem));
        }
        file.clients.count = clients;
    }
    for flow in &file.workload.flows {
        let layout = places.as_ref().map(|places| &places.layout);
        let flow_fault =
            |key: &str, problem: &str| Err(fault(&format!("workload.flows.{}.{key}", flow.name), problem));
        if flow.to.is_some_and(|to| to >= sinks) {
            return flow_fault("to", &format!("must be below the number of sinks, {sinks}"));
        }
        if layout.is_none() && flow.to.is_none() {
            return flow_fault("to", "must be a number without a mesh: hops have no places");
        }
        if layout.is_none() && flow.from != Side::All {
            return flow_fault("from", "must be \"all\" without a mesh: hops have no sides");
        }
        let bits = u128::from(flow.sizes(file.clients.uri_path_bytes()).1) * 8;
        let seconds = u128::from(file.workload.duration.unwrap_or_default().as_micros() / 1_000_000);
        let messages = u128::from(flow.rate.unwrap_or(0)) * seconds / bits.max(1);
        if messages > MOST_MESSAGES {
            let problem = format!("makes {messages} messages, of which there may be {MOST_MESSAGES}");
            return flow_fault("rate", &problem);
        }
        let leaves_none = |flow: &Flow| flow.sinks(file.clients.count, layout).iter().all(Option::is_none);
        if leaves_none(flow) {
            let all = Flow { share: 1.0, ..flow.clone() };
            return flow_fault(
                if leaves_none(&all) { "from" } else { "share" },
                "leaves no client to take part",
            );
        }
    }
    Ok(places.map(Arc::new))
}

/// Makes the names of the files of a mesh absolute, so that they lead to the same files from any folder.
pub(crate) fn name_files(item: &mut Item, folder: Option<&Path>, places: Option<&Places>) {
    for (key, _) in places.map_or(&[][..], |places| &places.files) {
        let path = format!("{MESH}.{key}");
        let Item { at, value: Value::Text(name) } = item.nearest_to(&path) else { continue };
        let Ok(absolute) = std::path::absolute(found(name, folder)) else { continue };
        if let Some(name) = absolute.to_str() {
            let named = Item { at: *at, value: Value::Text(name.to_owned()) };
            // The path leads to a member that is there.
            let _ = item.assign(&path, named);
        }
    }
}

/// Replaces the names of files by hashes of their contents, because a run depends on the contents alone.
pub(crate) fn with_contents(mut lines: Lines, places: Option<&Places>) -> Lines {
    for (key, hash) in places.map_or(&[][..], |places| &places.files) {
        let path = format!("{MESH}.{key}");
        if let Some((_, text)) = lines.iter_mut().find(|(known, _)| *known == path) {
            *text = quoted(&hash.to_string());
        }
    }
    lines
}
