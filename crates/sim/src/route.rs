//! The paths of packets.

use std::fmt;

use crate::packet::{Header, MAX_HOPS};
use crate::{HopId, NodeId};

/// A location in a network. All nodes of a site take the same paths, and share their hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u8);

/// The reason why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The path has no hop.
    NoHop,
    /// The path has more than 16 hops.
    TooLong,
    /// The network has no such hop.
    UnknownHop(HopId),
    /// The path passes the same hop twice.
    Loop(HopId),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHop => f.write_str("a path needs a hop"),
            Self::TooLong => write!(f, "a path has {MAX_HOPS} hops at most"),
            Self::UnknownHop(hop) => write!(f, "hop {} does not exist", hop.0),
            Self::Loop(hop) => write!(f, "the path passes hop {} twice", hop.0),
        }
    }
}

impl std::error::Error for PathError {}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    hops: [u16; MAX_HOPS],
    length: u8,
}

impl Path {
    /// Returns the path over `hops` in a network of `known` hops.
    pub(crate) fn new(hops: &[HopId], known: usize) -> Result<Self, PathError> {
        if hops.is_empty() {
            return Err(PathError::NoHop);
        }
        if hops.len() > MAX_HOPS {
            return Err(PathError::TooLong);
        }
        let mut path = Self { hops: [0; MAX_HOPS], length: hops.len() as u8 };
        for (place, &hop) in hops.iter().enumerate() {
            if usize::from(hop.0) >= known {
                return Err(PathError::UnknownHop(hop));
            }
            // A hop twice on a path would be borrowed twice when a packet moves on.
            if hops[..place].contains(&hop) {
                return Err(PathError::Loop(hop));
            }
            path.hops[place] = hop.0;
        }
        Ok(path)
    }

    fn hop(&self, place: usize) -> Option<HopId> {
        (place < usize::from(self.length)).then(|| HopId(self.hops[place]))
    }
}

/// The paths between sites, and the sites of the nodes.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The path between two sites is at `from * sites + to`. It is empty if the sites are not connected.
    paths: Vec<Path>,
    sites: usize,
    site_of: Vec<Site>,
}

impl Routes {
    pub(crate) fn connect(&mut self, from: Site, to: Site, path: Path) {
        self.admit(from);
        self.admit(to);
        self.paths[usize::from(from.0) * self.sites + usize::from(to.0)] = path;
    }

    /// Puts the next node at `site`.
    pub(crate) fn place(&mut self, site: Site) {
        self.admit(site);
        self.site_of.push(site);
    }

    /// Returns the number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.site_of.len()
    }

    /// Returns the present hop of a packet. Returns `None` if the packet is beyond the end of its path, or its sites
    /// have no path.
    pub(crate) fn hop(&self, packet: &Header) -> Option<HopId> {
        let site = |node: NodeId| self.site_of.get(node.0 as usize).map(|site| usize::from(site.0));
        // `place` has admitted the sites of both nodes, so the index is within the table.
        self.paths[site(packet.from())? * self.sites + site(packet.to())?].hop(packet.place())
    }

    /// Returns the next hop of a packet and its header there, or `None` if it has arrived.
    pub(crate) fn next(&self, packet: Header) -> Option<(HopId, Header)> {
        let packet = packet.on_next_hop()?;
        Some((self.hop(&packet)?, packet))
    }

    /// Makes room for a site in the table of paths.
    fn admit(&mut self, site: Site) {
        let sites = usize::from(site.0) + 1;
        if sites <= self.sites {
            return;
        }
        let mut paths = vec![Path::default(); sites * sites];
        for from in 0..self.sites {
            // The table grows in both directions, so each row moves.
            paths[from * sites..][..self.sites]
                .copy_from_slice(&self.paths[from * self.sites..][..self.sites]);
        }
        (self.paths, self.sites) = (paths, sites);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_path_of_hops_is_refused() {
        let path = |hops: &[u16]| {
            let hops: Vec<_> = hops.iter().copied().map(HopId).collect();
            Path::new(&hops, 20).map(|path| path.length)
        };
        assert_eq!(path(&[]), Err(PathError::NoHop));
        assert_eq!(path(&[0, 20]), Err(PathError::UnknownHop(HopId(20))));
        assert_eq!(path(&[0, 1, 0]), Err(PathError::Loop(HopId(0))));
        assert_eq!(path(&[0; 17]), Err(PathError::TooLong));
        assert_eq!(path(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]), Ok(16));
    }
}
