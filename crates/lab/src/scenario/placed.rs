//! The places of a mesh, found when its scenario is read.

use std::path::Path;
use std::sync::Arc;

use coapace_sim::{Layout, Luck, Time};

use super::document::Item;
use super::error::Fault;
use super::keys::File;
use super::mesh::Propagation;
use crate::places;

/// Finds the places, counts the clients, and checks what depends on both.
pub(super) fn place(
    file: &mut File,
    item: &Item,
    folder: Option<&Path>,
) -> Result<Option<Arc<Layout>>, Fault> {
    let fault =
        |path: &str, problem: &str| Fault::new(item.nearest_to(path).at, format!("`{path}` {problem}"));
    let layout = match &mut file.network.mesh {
        None => None,
        Some(mesh) => {
            let table = "network.mesh";
            let (layout, medium) = places::layout(mesh, folder)
                .map_err(|(key, problem)| fault(&format!("{table}.topology.{key}"), &problem))?;
            // What the scenario says counts more than the file of its topology.
            let says = |key: &str| {
                ["mesh", "radio", key]
                    .into_iter()
                    .try_fold(item.get("network")?, Item::get)
                    .is_some()
                    .then_some(())
            };
            if let Some((disk, delivery)) = medium {
                if says("propagation").is_none() {
                    mesh.radio.propagation = Propagation::UnitDisk(disk);
                }
                if says("delivery").is_none() {
                    mesh.radio.delivery = (delivery, delivery);
                }
            }
            let end = file.workload.duration.unwrap_or_default();
            let end = Time::from_nanos(end.as_micros().saturating_mul(1_000));
            places::waypoints(mesh, &layout, folder, end, Luck::new(1).stream("mobility"))
                .map_err(|(key, problem)| fault(&format!("{table}.mobility.{key}"), &problem))?;
            Some(layout)
        }
    };
    let mut sinks = file.server.count;
    if let Some(layout) = &layout {
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
    Ok(layout.map(Arc::new))
}

impl File {
    /// Whether there are places in files of their own.
    pub(super) fn reads_files(&self) -> bool {
        let reads = |mesh: &super::Mesh| mesh.topology.file.is_some() || mesh.mobility.file.is_some();
        self.network.mesh.as_ref().is_some_and(reads)
    }
}
