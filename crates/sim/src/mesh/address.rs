//! The addresses of a node, all derived from its number.

use std::net::Ipv6Addr;

use crate::NodeId;

/// All RPL nodes on the link, ff02::1a (RFC 6550 §6).
pub(crate) const ALL_RPL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1a);

/// The prefix of the mesh, fd00::/64. It is context 0 of header compression (RFC 6282 §3.1.1).
pub(crate) const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];

/// Returns the EUI-64 of a node: 02:12:74:00 and the number of the node. Cooja's motes have 00:12:74; here the bit of local
/// administration is set, too.
pub(crate) const fn eui64(node: NodeId) -> [u8; 8] {
    let [a, b, c, d] = node.0.to_be_bytes();
    [0x02, 0x12, 0x74, 0x00, a, b, c, d]
}

/// Returns the address of a node in the mesh, such as fd00::12:7400:0:1 for node 1, with the interface identifier of RFC 4291
/// appendix A.
pub(crate) const fn global(node: NodeId) -> Ipv6Addr {
    under(0xfd00, node)
}

/// Returns the link-local address of a node, such as fe80::12:7400:0:1 for node 1.
pub(crate) const fn link_local(node: NodeId) -> Ipv6Addr {
    under(0xfe80, node)
}

const fn under(prefix: u16, node: NodeId) -> Ipv6Addr {
    Ipv6Addr::new(prefix, 0, 0, 0, 0x0012, 0x7400, (node.0 >> 16) as u16, node.0 as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_identifier_is_the_eui_64_with_its_universal_bit_inverted() {
        for node in [0, 1, 0x0102_0304, u32::MAX].map(NodeId) {
            let mut identifier = eui64(node);
            identifier[0] ^= 2;
            assert_eq!(global(node).octets()[..8], PREFIX);
            assert_eq!(global(node).octets()[8..], identifier);
            assert_eq!(link_local(node).octets()[8..], identifier);
        }
        assert_eq!(global(NodeId(1)).to_string(), "fd00::12:7400:0:1");
        assert_eq!(link_local(NodeId(0xa_000b)).to_string(), "fe80::12:7400:a:b");
    }
}
