//! Shortest paths: a tree for every sink, known to all nodes.

use super::links::RadioLinks;
use crate::{NodeId, Stream};

/// The least share of frames that a link must deliver to be part of a path.
const LEAST_DELIVERY: f32 = 0.5;

/// The trees of the border router and of the sinks. A packet to a sink goes up the tree of the sink. A packet from a sink goes
/// down that tree. Any other packet takes the tree of the border router.
#[derive(Debug)]
pub(super) struct Trees {
    trees: Vec<Tree>,
    /// The random numbers by which a node chooses among equally near parents. The key is the tree and the node.
    luck: Stream,
}

/// A tree over all nodes that its root can reach.
#[derive(Debug, Default)]
struct Tree {
    root: u32,
    parent: Vec<u32>,
    /// The range of numbers that each node and its descendants have in a depth-first walk through the tree.
    span: Vec<(u32, u32)>,
    /// The children of node n, in the order of the walk, are `children[first[n]..first[n + 1]]`.
    first: Vec<u32>,
    children: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Trees {
    /// Returns the trees of these roots. The first is the border router.
    pub(super) fn new(links: &RadioLinks, roots: &[u32], luck: Stream) -> Self {
        let trees = roots.iter().map(|&root| Tree { root, ..Tree::default() }).collect();
        let mut trees = Self { trees, luck };
        trees.grow(links);
        trees
    }

    /// Grows all trees again, after nodes have moved.
    pub(super) fn grow(&mut self, links: &RadioLinks) {
        for (tree, key) in self.trees.iter_mut().zip(0..) {
            tree.grow(links, self.luck, key);
        }
    }

    /// Returns the next hop from `node` of a packet from `source` to `dest`; `None` without a path.
    pub(super) fn next(&self, node: u32, source: u32, dest: u32) -> Option<NodeId> {
        let of = |root: u32| self.trees.iter().find(|tree| tree.root == root);
        // A packet to a sink takes the tree of that sink, and a packet from a sink goes down the same tree.
        let tree = of(dest).or_else(|| of(source)).or(self.trees.first())?;
        tree.next(node, dest).map(NodeId)
    }

    /// Returns the next hop of a node on its way to the border router; `None` at the router itself or without a path.
    pub(super) fn parent(&self, node: u32) -> Option<NodeId> {
        let parent = *self.trees.first()?.parent.get(node as usize)?;
        (parent != NONE).then_some(NodeId(parent))
    }
}

impl Tree {
    fn grow(&mut self, links: &RadioLinks, luck: Stream, key: u64) {
        let nodes = links.nodes();
        let usable = |node: u32| {
            links.of(node).iter().filter(|link| link.delivery >= LEAST_DELIVERY).map(|link| link.to)
        };
        let mut depth = vec![NONE; nodes];
        self.parent = vec![NONE; nodes];
        // Breadth first. All nodes one step nearer to the root may be the parent of a node, and one of them is drawn.
        let mut found = vec![self.root];
        depth[self.root as usize] = 0;
        let mut begin = 0;
        while begin < found.len() {
            let end = found.len();
            for place in begin..end {
                let above = found[place];
                for node in usable(above) {
                    let own = depth[above as usize] + 1;
                    let known = &mut depth[node as usize];
                    if *known == NONE {
                        *known = own;
                        found.push(node);
                    }
                    if *known == own {
                        let draw = |parent: u32| luck.bits(key << 32 | u64::from(node), u64::from(parent), 0);
                        let parent = &mut self.parent[node as usize];
                        // The lowest draw wins, so the choice does not depend on the order in which parents are found.
                        if *parent == NONE || draw(above) < draw(*parent) {
                            *parent = above;
                        }
                    }
                }
            }
            begin = end;
        }
        self.walk(&found);
    }

    /// Lists the children of every node, and numbers the nodes in a depth-first walk. In `found`, parents come before
    /// children.
    fn walk(&mut self, found: &[u32]) {
        let nodes = self.parent.len();
        self.first = vec![0; nodes + 1];
        // The number of children of each node comes first, and then the sum, which is the place of its first child.
        for &node in found.iter().filter(|&&node| node != self.root) {
            self.first[self.parent[node as usize] as usize + 1] += 1;
        }
        for node in 0..nodes {
            self.first[node + 1] += self.first[node];
        }
        self.children = vec![0; found.len().saturating_sub(1)];
        let mut filled = self.first.clone();
        for &node in found.iter().filter(|&&node| node != self.root) {
            let place = &mut filled[self.parent[node as usize] as usize];
            self.children[*place as usize] = node;
            *place += 1;
        }
        // The number of descendants of each node and itself: children come after parents.
        let mut below = vec![1u32; nodes];
        for &node in found.iter().rev().filter(|&&node| node != self.root) {
            below[self.parent[node as usize] as usize] += below[node as usize];
        }
        self.span = vec![(NONE, NONE); nodes];
        self.span[self.root as usize] = (0, below[self.root as usize]);
        for &node in found {
            // A node has the first number of its span. Its children share the rest, one after the other.
            let mut begin = self.span[node as usize].0 + 1;
            for place in self.first[node as usize]..self.first[node as usize + 1] {
                let child = self.children[place as usize] as usize;
                self.span[child] = (begin, begin + below[child]);
                begin += below[child];
            }
        }
    }

    fn next(&self, node: u32, dest: u32) -> Option<u32> {
        let (own, &(number, _)) = (self.span.get(node as usize)?, self.span.get(dest as usize)?);
        if number == NONE || own.0 == NONE {
            return None;
        }
        // The destination is not below this node, so the packet goes up.
        if !(own.0..own.1).contains(&number) {
            return Some(self.parent[node as usize]);
        }
        let children =
            &self.children[self.first[node as usize] as usize..self.first[node as usize + 1] as usize];
        // The spans of the children follow each other, so the last that does not begin after the number contains it.
        let after = children.partition_point(|&child| self.span[child as usize].0 <= number);
        children.get(after.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Propagation, UnitDisk};
    use crate::{Luck, Position};

    fn grid(side: u32, seed: u64) -> (RadioLinks, Trees) {
        let place = |n: u32| Position { x: 10.0 * f64::from(n % side), y: 10.0 * f64::from(n / side) };
        let positions: Vec<_> = (0..side * side).map(place).collect();
        let disk = Propagation::UnitDisk(UnitDisk::NARROW);
        let links = RadioLinks::new(&positions, disk, Luck::new(seed).stream("shadowing"));
        let trees = Trees::new(&links, &[0, 35], Luck::new(seed).stream("routes"));
        (links, trees)
    }

    /// Returns the number of hops of a packet.
    fn hops(trees: &Trees, source: u32, dest: u32) -> u32 {
        let (mut at, mut hops) = (source, 0);
        while at != dest {
            at = trees.next(at, source, dest).unwrap().0;
            hops += 1;
            assert!(hops < 100, "a loop between {source} and {dest}");
        }
        hops
    }

    #[test]
    fn paths_to_and_from_a_sink_are_shortest_paths() {
        let (_, trees) = grid(6, 1);
        for node in 0..36u32 {
            for sink in [0, 35u32] {
                let expected = (node % 6).abs_diff(sink % 6) + (node / 6).abs_diff(sink / 6);
                assert_eq!((hops(&trees, node, sink), hops(&trees, sink, node)), (expected, expected));
            }
        }
    }

    #[test]
    fn shortest_path_trees_connect_any_two_nodes() {
        let (_, trees) = grid(6, 2);
        for source in 0..36 {
            for dest in 0..36 {
                hops(&trees, source, dest);
            }
        }
    }

    #[test]
    fn different_seeds_draw_different_parents_among_equally_near_ones() {
        let parents = |seed| (0..36).map(|node| grid(6, seed).1.parent(node)).collect::<Vec<_>>();
        assert_eq!(parents(1), parents(1));
        assert_ne!(parents(1), parents(2));
    }

    #[test]
    fn an_unreachable_node_has_no_path() {
        let positions = [0.0, 10.0, 30.0].map(|x| Position { x, y: 0.0 });
        let disk = Propagation::UnitDisk(UnitDisk::NARROW);
        let links = RadioLinks::new(&positions, disk, Luck::new(1).stream("shadowing"));
        let trees = Trees::new(&links, &[0], Luck::new(1).stream("routes"));
        assert_eq!((trees.next(1, 1, 0), trees.next(0, 0, 1)), (Some(NodeId(0)), Some(NodeId(1))));
        assert_eq!((trees.next(2, 2, 0), trees.next(0, 0, 2), trees.parent(2)), (None, None, None));
    }
}
