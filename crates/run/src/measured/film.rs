//! A mesh over time, as data for a player.

mod maker;
mod packed;

use coapace_sim::Position;
use serde::Serialize;

pub use maker::FilmMaker;

/// The state of all nodes of a mesh at regular times, made by a [`FilmMaker`].
///
/// Its JSON has rounded numbers, and only their changes from frame to frame (see [`FilmMoment`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Film {
    /// The simulated time from one frame to the next, in seconds.
    pub step_s: f64,
    /// The distance up to which frames are received, in metres; 0 if the model of propagation has no single distance.
    pub range_m: f64,
    /// The distance up to which transmissions destroy receptions, in metres; 0 if the model of propagation has no
    /// single distance.
    pub interference_m: f64,
    /// The number of frames that fit into a node's queue; 0 if the queue is not bounded.
    pub queue_frames: u32,
    /// The nodes, in the order of their numbers.
    pub nodes: Vec<FilmNode>,
    /// The frames, each with a [`FilmMoment`] for every node. The first frame is at the start of the run, and each
    /// further frame a step later. The number of events between two frames is the difference of their counts.
    pub frames: Vec<Vec<FilmMoment>>,
    /// The journeys of exchanges through the mesh, sorted by the time of their first packet.
    pub journeys: Vec<Journey>,
}

impl Film {
    /// The maximum number of frames of a film.
    pub const MAX_FRAMES: usize = 400;
    /// The maximum number of moments of a film: the number of frames times the number of nodes. With more nodes than
    /// this, a film has two frames.
    pub const MAX_MOMENTS: usize = 60_000;

    /// Returns the most frames that a film of this many nodes may have, at least two.
    pub fn max_frames(nodes: usize) -> usize {
        (Self::MAX_MOMENTS / nodes.max(1)).clamp(2, Self::MAX_FRAMES)
    }
}

/// A node of a film.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilmNode {
    /// The role of the node.
    pub role: FilmRole,
    /// The name that a player shows, such as `client 7`.
    pub name: String,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FilmRole {
    /// The root of the routes. It may be a sink, too.
    Root,
    /// A node that receives requests or notifications.
    Sink,
    /// Any other node. It sends requests or notifications, and relays.
    Client,
}

/// The state of a node at the time of a frame. Counts begin at the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FilmMoment {
    /// The position, rounded to 0.1 m.
    pub position: Position,
    /// The number of the next node on the way to the root; `None` if the node has no route.
    pub parent: Option<u32>,
    /// The number of radio frames in the node's queues. [`FilmMaker`] keeps the largest number since the last frame of
    /// the film.
    pub queued: u32,
    /// The radio frames that the node sent, counting every attempt but not acknowledgements.
    pub sent: u64,
    /// Radio frames that were destroyed while the node received them.
    pub collided: u64,
    /// The radio frames that the node gave up, because they were not acknowledged, the channel was busy, or its queue
    /// was full.
    pub dropped: u64,
    /// The RTO of the node's mechanism towards its sink in seconds, rounded to 10 ms; `None` if it has none.
    pub rto_s: Option<f64>,
    /// The energy that the node's radio has used so far, rounded to whole millijoules.
    pub energy_mj: f64,
}

/// An exchange and the events of its packets: the request, its retransmissions and the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Journey {
    /// The number of the node that sent the first packet.
    pub from: u32,
    /// The number of the node that the first packet was sent to.
    pub to: u32,
    /// The number of the exchange at its client, counted from 0.
    pub exchange: u32,
    /// The steps, sorted by time, at most [`MAX_STEPS`](Self::MAX_STEPS).
    pub steps: Vec<JourneyStep>,
}

/// A step of a [`Journey`]. In JSON it is a list of numbers in the order of these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JourneyStep(
    /// The time in milliseconds since the start of the run.
    pub u64,
    /// The event. For a packet: 0 sent, 1 delivered, 2 dropped. For a frame between neighbours: 3 sent, 4 received, 5
    /// collided, 6 missed, 7 not acknowledged, 8 channel busy, 9 queue full.
    pub u8,
    /// The node that sends the packet or the frame.
    pub u32,
    /// The node that the packet or frame is for, or [`Journey::NOBODY`] for a broadcast.
    pub u32,
    /// The number of the transmission within the exchange, 0 for the first.
    pub u8,
);

impl Journey {
    /// The maximum number of steps of a journey.
    pub const MAX_STEPS: usize = 400;

    /// The number in a step that means "no node", as the receiver of a broadcast.
    pub const NOBODY: u32 = u32::MAX;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a film of 50 nodes that move, send, collide and change their RTOs all the time.
    pub(super) fn busy(frames: u64) -> Film {
        let nodes = (0..50)
            .map(|node| FilmNode {
                role: match node {
                    0 => FilmRole::Root,
                    1 => FilmRole::Sink,
                    _ => FilmRole::Client,
                },
                name: format!("node {node}"),
            })
            .collect();
        let mut maker = FilmMaker::new(Film {
            step_s: 2.0,
            range_m: 10.0,
            interference_m: 20.0,
            queue_frames: 8,
            nodes,
            ..Film::default()
        });
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut now = vec![FilmMoment::default(); 50];
        for _ in 0..frames {
            for (node, moment) in (0_u32..).zip(&mut now) {
                moment.position.x += draw(60) as f64 / 10.0 - 3.0;
                moment.position.y += draw(60) as f64 / 10.0 - 3.0;
                moment.parent = (node > 0).then(|| draw(20)).map(|other| other as u32 % node.max(1));
                moment.queued = draw(9) as u32;
                moment.sent += draw(30);
                moment.collided += draw(4);
                moment.dropped += draw(2);
                moment.rto_s = (draw(10) > 0).then(|| 1.0 + draw(3000) as f64 / 100.0);
                moment.energy_mj += 105.0 + draw(1600) as f64 / 100.0;
            }
            maker.push(&now);
        }
        maker.finish()
    }

    #[test]
    fn a_film_of_300_frames_and_50_busy_nodes_is_below_500_kb() {
        let film = busy(300);
        assert_eq!((film.frames.len(), film.frames[0].len()), (300, 50));
        let bytes = serde_json::to_string(&film).unwrap().len();

        assert!(bytes < 500_000, "{bytes} bytes");
    }

    #[test]
    fn a_film_of_many_nodes_has_few_frames() {
        assert_eq!(Film::max_frames(0), 400);
        assert_eq!(Film::max_frames(50), 400);
        assert_eq!(Film::max_frames(400), 150);
        assert_eq!(Film::max_frames(100_000), 2);
    }
}
