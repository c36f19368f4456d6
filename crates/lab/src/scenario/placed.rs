//! The places of a mesh, found when its scenario is read.

use std::path::Path;
use std::sync::Arc;

use coapace_sim::Time;

use super::document::Item;
use super::error::Fault;
use super::keys::File;
use super::kind::Lines;
use super::mesh::Propagation;
use super::scalar::quoted;
use crate::places::Places;

/// Where the table of a mesh is.
const MESH: &str = "network.mesh";

/// Finds the places, counts the clients, and checks what depends on both.
pub(super) fn place(
    file: &mut File,
    item: &Item,
    folder: Option<&Path>,
) -> Result<Option<Arc<Places>>, Fault> {
    let fault =
        |path: &str, problem: &str| Fault::new(item.nearest_to(path).at, format!("`{path}` {problem}"));
    let end = file.workload.duration.unwrap_or_default();
    let end = Time::from_nanos(end.as_micros().saturating_mul(1_000));
    let places = file.network.mesh.as_ref().map(|mesh| Places::of(mesh, folder, end)).transpose();
    let places = places.map_err(|(key, problem)| fault(&format!("{MESH}.{key}"), &problem))?;
    if let (Some(mesh), Some((disk, delivery))) =
        (&mut file.network.mesh, places.as_ref().and_then(|places| places.medium.as_ref()))
    {
        // What the scenario says counts more than the file of its topology.
        let says = |key: &str| {
            ["network", "mesh", "radio", key]
                .into_iter()
                .try_fold(item, |table, key| table.get(key))
                .is_some()
        };
        if !says("propagation") {
            mesh.radio.propagation = Propagation::UnitDisk(disk.clone());
        }
        if !says("delivery") {
            mesh.radio.delivery = (*delivery, *delivery);
        }
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
        if flow.to >= sinks {
            let problem = format!("must be below the number of sinks, {sinks}");
            return Err(fault(&format!("workload.flows.{}.to", flow.name), &problem));
        }
        if (0..file.clients.count).all(|client| !flow.includes(client)) {
            return Err(fault(
                &format!("workload.flows.{}.share", flow.name),
                "leaves no client to take part",
            ));
        }
    }
    Ok(places.map(Arc::new))
}

/// Files are told by what they say, not by their names.
pub(super) fn with_contents(mut lines: Lines, places: Option<&Places>) -> Lines {
    for (key, hash) in places.map_or(&[][..], |places| &places.files) {
        let path = format!("{MESH}.{key}");
        if let Some((_, text)) = lines.iter_mut().find(|(known, _)| *known == path) {
            *text = quoted(&hash.to_string());
        }
    }
    lines
}
