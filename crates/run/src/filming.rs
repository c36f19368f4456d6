//! The progress of a run in steps. Each step adds a frame to the film. A run without a fixed end is over when all
//! clients are done.

use coapace_scenario::Scenario;
use coapace_sim::mesh::Propagation;
use coapace_sim::{Span, Tap, Time, World};

use super::medium::CountingMedium;
use super::seats::{Role, Seats};
use crate::measured::{Film, FilmMaker, FilmNode, FilmRole};
use crate::nodes::HostNode;

/// The number of steps of a run with a fixed end. A film that becomes too long keeps only some of them.
const STEPS: u64 = 300;

/// The length of a step of a run without a fixed end.
const STEP: Span = Span::from_secs(1);

/// The progress of a run, and its film, if a film is made.
pub(super) struct Filming {
    maker: Option<FilmMaker>,
    step: Span,
    next: Time,
}

impl Filming {
    /// Prepares a run that ends at `end`, which is `None` for a run without a fixed end. If `is_watched` is true, a
    /// film of the mesh is made.
    pub(super) fn new(scenario: &Scenario, seats: &Seats, end: Option<Time>, is_watched: bool) -> Self {
        // With a step of zero, the run would never reach its end.
        let step = end.map_or(STEP, |end| ((end - Time::ZERO) / STEPS).max(Span::from_nanos(1)));
        let maker = is_watched.then(|| film(scenario, seats, step)).flatten().map(FilmMaker::new);
        Self { maker, step, next: Time::ZERO }
    }

    /// Simulates up to the time `until`. If `is_fixed` is false, stops earlier when all clients are done.
    pub(super) fn advance<T: Tap, M: CountingMedium>(
        &mut self,
        world: &mut World<HostNode, T, M>,
        until: Time,
        is_fixed: bool,
    ) {
        // A medium that never rests, such as a mesh, would go on until `until` though all clients are done.
        let in_steps = self.maker.is_some() || !is_fixed && world.medium().never_rests();
        while in_steps && self.next <= until {
            world.run(self.next);
            if let Some(maker) = &mut self.maker {
                let moments = world.medium().moments(self.next, world.nodes());
                maker.push(&moments);
            }
            self.next = self.next + self.step;
            if !is_fixed && world.nodes().iter().all(HostNode::is_done) {
                return;
            }
        }
        world.run(until);
    }

    /// Returns the film, if one was made.
    pub(super) fn finish(self) -> Option<Box<Film>> {
        self.maker.map(|maker| Box::new(maker.finish()))
    }
}

/// Returns a film without frames; `None` if the scenario has no mesh.
fn film(scenario: &Scenario, seats: &Seats, step: Span) -> Option<Film> {
    let (mesh, layout) = (scenario.network.mesh.as_ref()?, scenario.layout()?);
    let (range_m, interference_m) = match &mesh.radio.propagation {
        Propagation::UnitDisk(disk) => (disk.range_m, disk.interference_m),
        // These models have no single distance, so no circle is drawn.
        Propagation::LogDistance(_) | Propagation::TwoRay(_) => (0.0, 0.0),
    };
    let node = |role: Role, node: u32| {
        let (role, name) = match role {
            Role::Server(_) | Role::Depot(..) => (FilmRole::Sink, format!("sink, node {node}")),
            Role::Client { number, .. } => (FilmRole::Client, format!("client {number}, node {node}")),
            Role::Relay => (FilmRole::Root, format!("border router, node {node}")),
        };
        // A border router that is a sink, too, is shown as the root of the routes.
        FilmNode { role: if node == layout.root { FilmRole::Root } else { role }, name }
    };
    Some(Film {
        step_s: step.as_secs_f64(),
        range_m,
        interference_m,
        queue_frames: u32::from(mesh.mac.config.queue_frames),
        nodes: seats.roles.iter().zip(0..).map(|(&(_, role), number)| node(role, number)).collect(),
        ..Film::default()
    })
}
