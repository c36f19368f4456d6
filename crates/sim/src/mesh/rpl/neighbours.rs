//! The table of neighbours: the quality of their links, and the choice of the best parent by MRHOF with ETX (RFC 6719).

use super::{INFINITE_RANK, LollipopCounter};
use crate::mesh::RplConfig;
use crate::{NodeId, Span, Time};

/// One transmission, in the unit of ETX and ranks: 1/128 of a transmission (RFC 6551 §4.3.2).
pub(super) const ETX_UNIT: u16 = 128;
/// Link statistics are fresh only if the last frame was sent less than this time ago (Contiki, net/link-stats.c).
const FRESH: Span = Span::from_secs(600);
/// Link statistics are fresh only with at least this number of recent transmissions.
const FRESH_COUNT: u8 = 4;
/// The largest value of the count of recent transmissions.
const MAX_COUNT: u8 = 16;
/// The time in which the count of recent transmissions is halved.
const HALF_LIFE: Span = Span::from_secs(1_200);

/// A neighbour, and the quality of the link to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour {
    pub(super) id: NodeId,
    /// The rank that the neighbour last announced; [`INFINITE_RANK`] while it cannot be a parent.
    pub(super) rank: u16,
    /// The DTSN that the neighbour last announced.
    pub(super) dtsn: LollipopCounter,
    /// The expected transmissions of a frame to the neighbour, in 1/128 of a transmission.
    etx: u16,
    /// The number of recent transmissions.
    counted: u8,
    /// The time of the last transmission; the start of the run if there was none.
    last: Time,
}

impl Neighbour {
    fn new(id: NodeId, config: &RplConfig) -> Self {
        Self {
            id,
            rank: INFINITE_RANK,
            dtsn: LollipopCounter::START,
            etx: u16::from(config.initial_etx).saturating_mul(ETX_UNIT),
            counted: 0,
            last: Time::ZERO,
        }
    }

    /// Returns the cost of the path to the root through this neighbour: its rank and the ETX of the link (RFC 6719
    /// §3.1).
    fn cost(&self) -> u16 {
        self.rank.saturating_add(self.etx)
    }

    /// Returns the rank that a child of this neighbour has (RFC 6719 §3.3).
    pub(super) fn rank_through(&self, config: &RplConfig) -> u16 {
        self.cost().max(self.rank.saturating_add(config.min_hop_rank_increase))
    }

    /// Returns whether the ETX of the link is low enough to use it.
    pub(super) fn is_reachable(&self, config: &RplConfig) -> bool {
        self.etx <= config.max_link_metric
    }

    /// Returns whether the ETX can be trusted: there were enough transmissions, and the last of them was recent.
    pub(super) fn is_fresh(&self, now: Time) -> bool {
        self.counted >= FRESH_COUNT && now - self.last < FRESH
    }

    fn is_acceptable(&self, config: &RplConfig) -> bool {
        self.is_reachable(config)
            && self.cost() <= config.max_path_cost
            && self.rank_through(config) < INFINITE_RANK
    }

    /// Updates the ETX with the outcome of a frame, by the moving average of Contiki (net/link-stats.c).
    fn sent(&mut self, now: Time, acknowledged: bool, transmissions: u8, config: &RplConfig) {
        // Old transmissions count less, so that a link that was not used is measured again.
        let half_lives = (now - self.last).as_nanos() / HALF_LIFE.as_nanos();
        // The count has 8 bits, so 8 half-lives leave nothing. A shift by 8 is out of range and gives `None`.
        let counted = self.counted.checked_shr(half_lives.min(8) as u32).unwrap_or(0);
        self.last = now;
        self.counted = counted.saturating_add(transmissions).min(MAX_COUNT);
        let (unsure, sure) = config.etx_weights;
        let weight = u32::from(if self.is_fresh(now) { sure } else { unsure }.min(100));
        let sample =
            u32::from(if acknowledged { transmissions } else { config.no_ack_etx }) * u32::from(ETX_UNIT);
        // Both are at most 2^16 - 1.
        self.etx = ((u32::from(self.etx) * (100 - weight) + sample * weight) / 100) as u16;
    }
}

/// The table of neighbours, in the order in which they were first heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours(Vec<Neighbour>);

impl Neighbours {
    pub(super) fn get(&self, id: NodeId) -> Option<&Neighbour> {
        self.0.iter().find(|neighbour| neighbour.id == id)
    }

    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Neighbour> {
        self.0.iter_mut().find(|neighbour| neighbour.id == id)
    }

    /// Returns the entry of the neighbour `id`, and adds the entry if there is none. In a full table, the new entry
    /// replaces the costliest neighbour that costs more than `cost` and for which `kept` is false. Returns `None` if no
    /// neighbour may be replaced.
    pub(super) fn get_or_add(
        &mut self,
        id: NodeId,
        cost: u16,
        config: &RplConfig,
        kept: impl Fn(NodeId) -> bool,
    ) -> Option<&mut Neighbour> {
        let at = match self.0.iter().position(|neighbour| neighbour.id == id) {
            Some(at) => at,
            None if self.0.len() < usize::from(config.max_neighbours) => {
                self.0.push(Neighbour::new(id, config));
                self.0.len() - 1
            }
            None => {
                let others =
                    self.0.iter().enumerate().filter(|(_, other)| other.cost() > cost && !kept(other.id));
                let (at, _) = others.max_by_key(|(_, other)| other.cost())?;
                self.0[at] = Neighbour::new(id, config);
                at
            }
        };
        self.0.get_mut(at)
    }

    /// Updates the ETX of `id` with the outcome of a frame. Returns the neighbour, if it is in the table.
    pub(super) fn sent(
        &mut self,
        now: Time,
        id: NodeId,
        (acknowledged, transmissions): (bool, u8),
        config: &RplConfig,
    ) -> Option<Neighbour> {
        let neighbour = self.get_mut(id)?;
        neighbour.sent(now, acknowledged, transmissions, config);
        Some(*neighbour)
    }

    /// Returns the acceptable neighbour of the lowest cost, among the neighbours for which `counts` is true. If the
    /// parent `present` is among them, it is returned unless another costs less by at least the threshold (RFC 6719
    /// §3.2.2).
    pub(super) fn best(
        &self,
        present: Option<NodeId>,
        config: &RplConfig,
        counts: impl Fn(&Neighbour) -> bool,
    ) -> Option<&Neighbour> {
        let mut best: Option<&Neighbour> = None;
        let mut stays = None;
        for neighbour in
            self.0.iter().filter(|neighbour| neighbour.is_acceptable(config) && counts(neighbour))
        {
            // The parent is kept apart, because a better neighbour has to beat it by a threshold.
            if Some(neighbour.id) == present {
                stays = Some(neighbour);
            } else if best.is_none_or(|best| neighbour.cost() < best.cost()) {
                best = Some(neighbour);
            }
        }
        match (stays, best) {
            (Some(stays), Some(best)) => {
                let better = stays.cost().saturating_sub(best.cost());
                // A small gain is not a reason to change the parent: the tree would not come to rest (RFC 6719 §3.2.2).
                Some(if better > 0 && better >= config.parent_switch_threshold { best } else { stays })
            }
            (stays, best) => stays.or(best),
        }
    }

    /// Returns the neighbour whose link to probe, by the rule of Contiki. It is the `parent`, unless the parent's
    /// statistics are fresh. Otherwise it is the neighbour of the lowest cost without fresh statistics. If `oldest` is
    /// true, or if all statistics are fresh, it is the neighbour with the oldest statistics.
    pub(super) fn to_probe(&self, now: Time, parent: Option<NodeId>, oldest: bool) -> Option<NodeId> {
        let candidates = || self.0.iter().filter(|neighbour| neighbour.rank < INFINITE_RANK);
        if let Some(parent) = parent
            && self.get(parent).is_some_and(|parent| !parent.is_fresh(now))
        {
            return Some(parent);
        }
        let unknown = candidates().filter(|neighbour| !oldest && !neighbour.is_fresh(now));
        let chosen = unknown.min_by_key(|neighbour| neighbour.cost());
        chosen.or_else(|| candidates().min_by_key(|neighbour| neighbour.last)).map(|neighbour| neighbour.id)
    }

    /// Returns whether any neighbour has a path to the root.
    pub(super) fn any_joined(&self) -> bool {
        self.0.iter().any(|neighbour| neighbour.rank < INFINITE_RANK)
    }

    /// Forgets the ranks of all neighbours, until they announce them again.
    pub(super) fn forget_ranks(&mut self) {
        self.0.iter_mut().for_each(|neighbour| neighbour.rank = INFINITE_RANK);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: RplConfig = RplConfig::CONTIKI_3;

    fn table(ranks: &[u16]) -> Neighbours {
        let mut neighbours = Neighbours::default();
        for (id, &rank) in ranks.iter().enumerate() {
            neighbours.get_or_add(NodeId(id as u32), rank, &CONFIG, |_| false).unwrap().rank = rank;
        }
        neighbours
    }

    fn best(neighbours: &Neighbours, present: Option<u32>) -> Option<u32> {
        neighbours.best(present.map(NodeId), &CONFIG, |_| true).map(|best| best.id.0)
    }

    #[test]
    fn etx_approaches_one_over_a_good_link_and_becomes_unusable_over_a_dead_one() {
        let mut neighbours = table(&[128, 128]);
        let mut now = Time::ZERO;
        for _ in 0..60 {
            now = now + Span::from_secs(1);
            neighbours.sent(now, NodeId(0), (true, 1), &CONFIG);
            neighbours.sent(now, NodeId(1), (false, 8), &CONFIG);
        }
        // Whole 1/128 are rounded down: the average comes to rest at one.
        assert_eq!(neighbours.get(NodeId(0)).unwrap().etx, 128);
        let dead = neighbours.get(NodeId(1)).unwrap();
        assert!(dead.etx > 9 * 128 && !dead.is_reachable(&CONFIG));
        assert_eq!(best(&neighbours, Some(1)), Some(0));
    }

    #[test]
    fn the_first_frames_to_a_neighbour_weigh_more_in_etx_than_later_ones() {
        let mut neighbours = table(&[128]);
        // 0.7 · 256 + 0.3 · 128, then, fresh, 0.85 · 217 + 0.15 · 4 · 128.
        let etx = |neighbours: &Neighbours| neighbours.get(NodeId(0)).unwrap().etx;
        neighbours.sent(Time::from_secs(1), NodeId(0), (true, 1), &CONFIG);
        assert_eq!(etx(&neighbours), 217);
        neighbours.sent(Time::from_secs(2), NodeId(0), (true, 4), &CONFIG);
        assert_eq!(etx(&neighbours), 261);
        assert!(neighbours.get(NodeId(0)).unwrap().is_fresh(Time::from_secs(601)));
        assert!(!neighbours.get(NodeId(0)).unwrap().is_fresh(Time::from_secs(602)));
    }

    #[test]
    fn the_cheapest_parent_is_chosen_and_changed_only_for_one_better_by_the_threshold() {
        let neighbours = table(&[400, 300, 305]);
        assert_eq!(best(&neighbours, None), Some(1));
        assert_eq!(best(&neighbours, Some(2)), Some(2));
        assert_eq!(best(&neighbours, Some(0)), Some(1));
        let threshold = table(&[396, 300]);
        assert_eq!(best(&threshold, Some(0)), Some(1));
        let below = table(&[395, 300]);
        assert_eq!(best(&below, Some(0)), Some(0));
    }

    #[test]
    fn neighbours_of_infinite_rank_and_excluded_ones_are_not_chosen_as_parents() {
        let neighbours = table(&[300, INFINITE_RANK, 900]);
        let best =
            |without: u32| neighbours.best(None, &CONFIG, |it| it.id.0 != without).map(|best| best.id.0);
        assert_eq!(best(9), Some(0));
        assert_eq!(best(0), Some(2));
        assert_eq!(neighbours.get(NodeId(0)).unwrap().rank_through(&CONFIG), 556);
    }

    #[test]
    fn rank_rises_by_at_least_min_hop_rank_increase() {
        let config = RplConfig { min_hop_rank_increase: 512, ..CONFIG };
        assert_eq!(table(&[512]).get(NodeId(0)).unwrap().rank_through(&config), 1_024);
    }

    #[test]
    fn a_full_neighbour_table_replaces_its_most_expensive_neighbour_by_a_better_one() {
        let config = RplConfig { max_neighbours: 3, ..CONFIG };
        let mut neighbours = table(&[300, 700, 900]);
        assert!(neighbours.get_or_add(NodeId(7), 1_200, &config, |_| false).is_none());
        assert!(neighbours.get_or_add(NodeId(7), 300, &config, |_| true).is_none());
        neighbours.get_or_add(NodeId(7), 300, &config, |id| id.0 == 2).expect("1 is dearer");
        assert!(neighbours.get(NodeId(1)).is_none() && neighbours.get(NodeId(2)).is_some());
    }

    #[test]
    fn probing_starts_with_the_parent_then_unmeasured_and_then_least_recently_heard_neighbours() {
        let mut neighbours = table(&[300, 700, 500]);
        let probe = |neighbours: &Neighbours, oldest| {
            neighbours.to_probe(Time::from_secs(10), Some(NodeId(0)), oldest).map(|id| id.0)
        };
        assert_eq!(probe(&neighbours, true), Some(0));
        neighbours.sent(Time::from_secs(3), NodeId(0), (true, 5), &CONFIG);
        assert_eq!(probe(&neighbours, false), Some(2));
        neighbours.sent(Time::from_secs(2), NodeId(2), (true, 1), &CONFIG);
        assert_eq!(probe(&neighbours, true), Some(1));
    }
}
