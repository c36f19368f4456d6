//! The numbers of clients, by the addresses from which a server receives their datagrams.

use std::collections::HashMap;
use std::net::SocketAddr;

use coapace_sim::NodeId;

/// Numbers for the addresses of a server's clients. A client keeps its number for the run. Addresses are numbered as
/// they first appear, so the number does not say which client it is: the relay in between has ports of its own.
#[derive(Debug)]
pub(super) struct ClientNumbers {
    first: u32,
    most: u32,
    numbers: HashMap<SocketAddr, NodeId>,
    addresses: Vec<SocketAddr>,
}

impl ClientNumbers {
    /// Makes an empty table for `most` addresses, which get the numbers from `first` on.
    pub(super) fn new(first: u32, most: u32) -> Self {
        Self { first, most, numbers: HashMap::new(), addresses: Vec::new() }
    }

    /// Returns the number of an address; `None` if it is new and the table is full.
    pub(super) fn number(&mut self, address: SocketAddr) -> Option<NodeId> {
        if let Some(&number) = self.numbers.get(&address) {
            return Some(number);
        }
        let place = self.addresses.len() as u32;
        (place < self.most).then(|| {
            let number = NodeId(self.first + place);
            self.numbers.insert(address, number);
            self.addresses.push(address);
            number
        })
    }

    /// Returns the address with a number; `None` if no client has this number yet.
    pub(super) fn address(&self, number: NodeId) -> Option<SocketAddr> {
        self.addresses.get(number.0.checked_sub(self.first)? as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_client_number_and_a_full_table_refuses_others() {
        let mut sources = ClientNumbers::new(2, 2);
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!([9, 8, 9].map(|port| sources.number(address(port))), [2, 3, 2].map(|it| Some(NodeId(it))));
        assert_eq!((sources.number(address(7)), sources.address(NodeId(3))), (None, Some(address(8))));
        assert_eq!((sources.address(NodeId(1)), sources.address(NodeId(4))), (None, None));
    }
}
