//! The links between radios, computed from their positions by a model of propagation.

use super::{LogDistance, Propagation, TwoRay, UnitDisk};
use crate::{Position, Stream};

/// The effect of a node's transmissions at another node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RadioLink {
    pub(crate) to: u32,
    /// The share of frames received while nothing else is on the air; 0 for a node that is only disturbed.
    pub(crate) delivery: f32,
    /// Received power in hundredths of a dBm; 0 on a unit disk.
    pub(crate) power: i16,
    /// True if clear channel assessment notices the transmissions.
    pub(crate) sensed: bool,
}

/// The links of every node.
#[derive(Debug)]
pub(crate) struct RadioLinks {
    /// The links of node n are `all[first[n]..first[n + 1]]`.
    all: Vec<RadioLink>,
    first: Vec<usize>,
    propagation: Propagation,
    /// The random numbers of obstacles, with the two nodes of a pair as key, the lower first.
    shadowing: Stream,
}

/// The factor by which ranges are widened, so that a link as long as the range is kept in spite of rounding.
const TOLERANCE: f64 = 1.0 + 1e-9;

/// The least share of frames that a link delivers, one in 20. A link with less only disturbs.
const LEAST_DELIVERY: f64 = 0.05;

/// The difference, in dB, between the sensitivity and the power at which a link delivers [`LEAST_DELIVERY`] of all
/// frames: ln 19, by the formula in [`RadioLinks::link`].
const LEAST_DELIVERY_DB: f64 = 2.944_438_979_166_44;

/// The largest number of links. A link takes 16 bytes, so the links take 800 MB at most and leave memory for everything
/// else.
const MOST: usize = 50_000_000;

/// The wavelength at 2.4 GHz, in metres.
const WAVELENGTH_M: f64 = 0.125;

/// The least power of a link that fits into 16 bits of hundredths of a dBm.
const WEAKEST_DBM: f64 = -300.0;

impl RadioLinks {
    pub(crate) fn new(positions: &[Position], propagation: Propagation, shadowing: Stream) -> Self {
        let mut links = Self { all: Vec::new(), first: Vec::new(), propagation, shadowing };
        links.survey(positions);
        links
    }

    /// Returns whether there is room for the links between nodes at these positions, whatever their shadowing.
    pub(crate) fn fit(positions: &[Position], propagation: Propagation) -> bool {
        let reach = propagation.reach_m();
        let cells = Cells::new(positions, reach);
        let mut left = MOST;
        positions.iter().all(|&place| {
            let within = |other: &u32| place.distance(positions[*other as usize]) <= reach;
            // The search stops when the bound is passed, so a mesh that is too dense is refused quickly.
            let near = cells.around(place).filter(within).take(left + 1).count();
            left = left.saturating_sub(near);
            left > 0
        })
    }

    /// Returns the links of a node, in the order of the nodes at their other ends.
    #[inline]
    pub(crate) fn of(&self, node: u32) -> &[RadioLink] {
        let bound = |node: usize| self.first.get(node).copied().unwrap_or(self.all.len());
        &self.all[bound(node as usize)..bound(node as usize + 1)]
    }

    /// Returns the number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// Returns how much stronger a frame must be than the frames that overlap it to survive, in hundredths of a dB. On
    /// a unit disk no difference is enough.
    pub(crate) fn capture(&self) -> i16 {
        match self.propagation {
            Propagation::UnitDisk(_) => i16::MAX,
            Propagation::LogDistance(LogDistance { capture_db, .. })
            | Propagation::TwoRay(TwoRay { capture_db, .. }) => (capture_db * 100.0) as i16,
        }
    }

    /// Returns the share of frames that go on the air. The other frames fail at their sender.
    pub(crate) fn success_ratio_tx(&self) -> f64 {
        match self.propagation {
            Propagation::UnitDisk(UnitDisk { success_ratio_tx, .. }) => success_ratio_tx,
            Propagation::LogDistance(_) | Propagation::TwoRay(_) => 1.0,
        }
    }

    /// Computes the links between all pairs of nodes that may hear each other.
    pub(crate) fn survey(&mut self, positions: &[Position]) {
        let reach = self.propagation.reach_m();
        self.all.clear();
        self.first.clear();
        let cells = Cells::new(positions, reach);
        for (node, &place) in positions.iter().enumerate() {
            let first = self.all.len();
            self.first.push(first);
            for other in cells.around(place) {
                if other as usize != node {
                    let link = self.link(node as u32, other, place.distance(positions[other as usize]));
                    self.all.extend(link);
                }
            }
            // The order of events must not depend on the order of squares.
            self.all[first..].sort_unstable_by_key(|link| link.to);
        }
        self.first.push(self.all.len());
    }

    fn link(&self, from: u32, to: u32, distance_m: f64) -> Option<RadioLink> {
        let (power_dbm, sensitivity_dbm, sense_dbm) = match self.propagation {
            // A disk knows no power: the distance alone decides, like in Cooja's `UDGM.java`.
            Propagation::UnitDisk(UnitDisk {
                range_m,
                interference_m,
                sense_m,
                open_edge,
                success_ratio_rx,
                ..
            }) => {
                let within = |bound: f64| distance_m <= bound * TOLERANCE;
                // An open edge excludes a node at exactly the bound, in spite of rounding.
                let inside =
                    |bound: f64| if open_edge { distance_m * TOLERANCE < bound } else { within(bound) };
                // The share of frames falls with the square of the distance, to `success_ratio_rx` at the edge (Cooja's `UDGM.java`).
                let share = distance_m / range_m;
                let delivery =
                    if within(range_m) { 1.0 - share * share * (1.0 - success_ratio_rx) } else { 0.0 };
                let sensed = inside(sense_m);
                return (inside(interference_m) || delivery > 0.0 || sensed).then_some(RadioLink {
                    to,
                    delivery: delivery as f32,
                    power: 0,
                    sensed,
                });
            }
            Propagation::LogDistance(model) => {
                // The model has no meaning below one metre, so such distances count as one.
                let loss_db = model.first_metre_db + 10.0 * model.exponent * libm::log10(distance_m.max(1.0));
                let obstacle_db = model.shadowing_db * self.normal(from, to);
                (model.power_dbm - loss_db - obstacle_db, model.sensitivity_dbm, model.sense_dbm)
            }
            Propagation::TwoRay(model) => {
                // Two nodes at the same place would have an infinite gain.
                let gain_db = two_ray_db(distance_m.max(0.1), model.height_m, model.reflection);
                (model.power_dbm + gain_db, model.sensitivity_dbm, model.sense_dbm)
            }
        };
        // The signal neither arrives nor disturbs, so the mesh keeps no link.
        if power_dbm < self.propagation.faintest_dbm() {
            return None;
        }
        // The share rises from nearly none to nearly all within some 6 dB, like in receivers of 802.15.4.
        let delivery = 1.0 / (1.0 + libm::exp(sensitivity_dbm - power_dbm));
        Some(RadioLink {
            to,
            delivery: if delivery < LEAST_DELIVERY { 0.0 } else { delivery as f32 },
            power: (power_dbm.max(WEAKEST_DBM) * 100.0) as i16,
            sensed: power_dbm >= sense_dbm,
        })
    }

    /// Returns a number from the standard normal distribution (Box and Muller) for a pair of nodes, the same in both
    /// directions.
    fn normal(&self, one: u32, other: u32) -> f64 {
        let (low, high) = (u64::from(one.min(other)), u64::from(one.max(other)));
        // `unit` may be 0, which has no logarithm; 1 − `unit` may not.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.shadowing.unit(low, high, 0)));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.shadowing.unit(low, high, 1))
    }
}

impl Propagation {
    /// Returns the distance beyond which a transmission is neither heard nor disturbs a node, in metres.
    fn reach_m(&self) -> f64 {
        match *self {
            Self::UnitDisk(UnitDisk { range_m, interference_m, sense_m, .. }) => {
                range_m.max(interference_m).max(sense_m) * TOLERANCE
            }
            Self::LogDistance(LogDistance { power_dbm, first_metre_db, exponent, shadowing_db, .. }) => {
                // Shadowing may help by four standard deviations.
                let budget_db = power_dbm - first_metre_db + 4.0 * shadowing_db - self.faintest_dbm();
                // `link` counts shorter distances as one metre.
                libm::pow(10.0, budget_db / (10.0 * exponent)).max(1.0)
            }
            Self::TwoRay(TwoRay { power_dbm, .. }) => {
                // Both rays in phase: 6 dB above free space.
                let budget_db = power_dbm + 6.0 - self.faintest_dbm();
                WAVELENGTH_M / (4.0 * std::f64::consts::PI) * libm::pow(10.0, budget_db / 20.0)
            }
        }
    }

    /// Returns the power below which a signal is neither received nor noticed, nor disturbs the weakest frame that is received.
    fn faintest_dbm(&self) -> f64 {
        match *self {
            Self::UnitDisk(_) => WEAKEST_DBM,
            Self::LogDistance(LogDistance { sensitivity_dbm, sense_dbm, capture_db, .. })
            | Self::TwoRay(TwoRay { sensitivity_dbm, sense_dbm, capture_db, .. }) => {
                // A signal that is weaker than a frame by the capture lead does not harm it.
                sense_dbm.min(sensitivity_dbm - LEAST_DELIVERY_DB - capture_db)
            }
        }
    }
}

/// Returns the total gain of two rays, one direct and one reflected by the ground, in dB.
fn two_ray_db(distance_m: f64, height_m: f64, reflection: f64) -> f64 {
    // The reflected ray is as long as a ray from the sender's mirror image below the ground. Both antennas have the same height.
    let bounced_m = libm::sqrt(distance_m * distance_m + 4.0 * height_m * height_m);
    let phase = 2.0 * std::f64::consts::PI * (bounced_m - distance_m) / WAVELENGTH_M;
    // The ground turns the phase by half a turn.
    let (real, imaginary) = (
        1.0 / distance_m - reflection * libm::cos(phase) / bounced_m,
        reflection * libm::sin(phase) / bounced_m,
    );
    let scale = WAVELENGTH_M / (4.0 * std::f64::consts::PI);
    10.0 * libm::log10((real * real + imaginary * imaginary).max(f64::MIN_POSITIVE) * scale * scale)
}

/// The nodes sorted by squares of the plane, so that the nodes near a place are found without a search through all.
struct Cells {
    side_m: f64,
    /// (row, column, node), sorted.
    nodes: Vec<(i64, i64, u32)>,
}

impl Cells {
    fn new(positions: &[Position], side_m: f64) -> Self {
        // A side of 0, for a reach of 0, would divide by 0.
        let mut cells = Self { side_m: side_m.max(1e-3), nodes: Vec::with_capacity(positions.len()) };
        for (node, &place) in positions.iter().enumerate() {
            let (row, column) = cells.cell(place);
            cells.nodes.push((row, column, node as u32));
        }
        cells.nodes.sort_unstable();
        cells
    }

    fn cell(&self, place: Position) -> (i64, i64) {
        ((place.y / self.side_m).floor() as i64, (place.x / self.side_m).floor() as i64)
    }

    /// Returns the nodes in the square of a place and in the eight squares around it.
    fn around(&self, place: Position) -> impl Iterator<Item = u32> {
        let (row, column) = self.cell(place);
        (row - 1..=row + 1).flat_map(move |row| {
            // The three squares of a row follow each other in the sorted list.
            let begin = self.nodes.partition_point(|&(r, c, _)| (r, c) < (row, column - 1));
            let rest = self.nodes.get(begin..).unwrap_or_default().iter();
            rest.take_while(move |&&(r, c, _)| (r, c) <= (row, column + 1)).map(|&(.., node)| node)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;

    fn links(positions: &[(f64, f64)], propagation: Propagation) -> RadioLinks {
        let positions: Vec<_> = positions.iter().map(|&(x, y)| Position { x, y }).collect();
        RadioLinks::new(&positions, propagation, Luck::new(1).stream("shadowing"))
    }

    const DISK: Propagation =
        Propagation::UnitDisk(UnitDisk { sense_m: 5.0, success_ratio_rx: 0.5, ..UnitDisk::NARROW });

    #[test]
    fn a_unit_disk_has_a_transmission_range_and_a_larger_interference_range() {
        let links = links(&[(0.0, 0.0), (5.0, 0.0), (10.0, 0.0), (20.0, 0.0), (20.1, 0.0)], DISK);
        let of: Vec<_> = links.of(0).iter().map(|link| (link.to, link.delivery, link.sensed)).collect();
        assert_eq!(of, [(1, 0.875, true), (2, 0.5, false), (3, 0.0, false)]);
    }

    #[test]
    fn nodes_exactly_at_an_open_edge_receive_frames_and_are_not_disturbed() {
        let Propagation::UnitDisk(disk) = DISK else { panic!("{DISK:?}") };
        let disk = UnitDisk { sense_m: 10.0, open_edge: true, ..disk };
        let links = links(
            &[(0.0, 0.0), (9.9, 0.0), (10.0, 0.0), (19.9, 0.0), (20.0, 0.0)],
            Propagation::UnitDisk(disk),
        );
        let of: Vec<_> = links.of(0).iter().map(|link| (link.to, link.delivery > 0.0, link.sensed)).collect();
        assert_eq!(of, [(1, true, true), (2, true, false), (3, false, false)]);
    }

    #[test]
    fn the_grid_search_for_neighbours_finds_the_same_nodes_as_comparing_all_pairs() {
        let stream = Luck::new(2).stream("places");
        let place = |n| (100.0 * stream.unit(n, 0, 0) - 50.0, 100.0 * stream.unit(n, 1, 0) - 50.0);
        let places: Vec<_> = (0..200).map(place).collect();
        let links = links(&places, DISK);
        for (node, &(x, y)) in places.iter().enumerate() {
            let near = |&(_, &(a, b)): &(usize, &(f64, f64))| {
                Position { x, y }.distance(Position { x: a, y: b }) <= 20.0
            };
            let expected: Vec<_> = places
                .iter()
                .enumerate()
                .filter(near)
                .map(|(other, _)| other as u32)
                .filter(|&other| other as usize != node)
                .collect();
            assert_eq!(links.of(node as u32).iter().map(|link| link.to).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_delivery_of_a_link_falls_with_distance() {
        let propagation = Propagation::LogDistance(LogDistance {
            shadowing_db: 0.0,
            sensitivity_dbm: -85.0,
            sense_dbm: -90.0,
            ..LogDistance::CC2420
        });
        let links = links(&[(0.0, 0.0), (10.0, 0.0), (31.6, 0.0), (45.0, 0.0), (60.0, 0.0)], propagation);
        let [near, edge, far] = links.of(0) else { panic!("{:?}", links.of(0)) };
        assert!(near.delivery > 0.999 && near.sensed, "{near:?}");
        assert!((edge.delivery - 0.5).abs() < 0.01, "{edge:?}");
        assert!(far.delivery < 0.05 && far.sensed, "{far:?}");
        assert_eq!(links.capture(), 300);
    }

    #[test]
    fn shadowing_is_equal_in_both_directions_and_different_for_each_pair() {
        let propagation = Propagation::LogDistance(LogDistance {
            exponent: 2.0,
            shadowing_db: 6.0,
            sensitivity_dbm: -85.0,
            sense_dbm: -90.0,
            ..LogDistance::CC2420
        });
        let links = links(&[(0.0, 0.0), (10.0, 0.0), (0.0, 10.0)], propagation);
        assert_eq!(links.of(0)[0].power, links.of(1)[0].power);
        assert_ne!(links.of(0)[0].power, links.of(0)[1].power);
    }

    #[test]
    fn the_two_ray_model_cancels_at_some_distances() {
        let free_space_db = 20.0 * libm::log10(WAVELENGTH_M / (4.0 * std::f64::consts::PI * 10.0));
        let gains: Vec<_> = (1..100).map(|n| two_ray_db(f64::from(n) * 0.5, 1.0, 0.9)).collect();
        assert!((two_ray_db(10.0, 1.0, 0.0) - free_space_db).abs() < 1e-9, "without a ground");
        let falls = gains.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(falls < 90 && falls > 50, "it falls and rises: {falls}");
    }
}
