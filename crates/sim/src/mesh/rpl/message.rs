//! RPL's messages (RFC 6550 §6), and what they are on the wire.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Icmpv6Packet, Icmpv6Repr, Ipv6Address, RplInstanceId, RplOptionPacket, RplOptionRepr, RplRepr,
};

use super::Sequence;
use crate::NodeId;
use crate::mesh::RplConfig;

/// A message between neighbours. The instance is 0; the DODAG's version never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Is there a DODAG? Always sent to all on the link.
    Dis,
    /// Here is one.
    Dio {
        /// Its root.
        root: NodeId,
        /// How far away the sender is from it; [`INFINITE_RANK`](super::INFINITE_RANK) is not to be taken as a parent.
        rank: u16,
        /// A number higher than before asks the children for DAOs.
        dtsn: Sequence,
    },
    /// Who can be reached through the sender.
    Dao {
        /// The root of the DODAG.
        root: NodeId,
        /// The one who can be reached.
        target: NodeId,
        /// Counts the sender's DAOs.
        sequence: Sequence,
        /// It can no longer be.
        no_path: bool,
    },
}

/// MRHOF's objective code point (RFC 6719 §6).
const MRHOF: u16 = 1;
/// The unit of route lifetimes, in seconds: Contiki's.
const LIFETIME_UNIT: u16 = 60;
/// A DODAG Configuration option, and one with a prefix behind it (RFC 6550 §6.7.6, §6.7.10).
const CONFIGURATION: usize = 16;
const DIO_OPTIONS: usize = CONFIGURATION + 32;
/// An RPL Target option, and one with transit information behind it (RFC 6550 §6.7.7, §6.7.8).
const TARGET: usize = 20;
const DAO_OPTIONS: usize = TARGET + 6;

impl Message {
    /// Appends the ICMPv6 message with its checksum, as Contiki sends it: a DIO with the configuration of the DODAG and
    /// the /64 of its root, a DAO with the DODAG's name and one target.
    ///
    /// `source` and `dest` are the addresses of the packet, which the checksum covers; `address` gives the global
    /// addresses of nodes.
    pub fn write(
        &self,
        config: &RplConfig,
        (source, dest): ([u8; 16], [u8; 16]),
        address: impl Fn(NodeId) -> [u8; 16],
        bytes: &mut Vec<u8>,
    ) {
        let addresses = (Ipv6Address::from(source), Ipv6Address::from(dest));
        let lifetime = lifetime_units(config);
        match *self {
            Self::Dis => append(&RplRepr::DodagInformationSolicitation { options: &[] }, addresses, bytes),
            Self::Dio { root, rank, dtsn } => {
                let root = address(root);
                let mut prefix = [0; 16];
                prefix[..8].copy_from_slice(&root[..8]);
                let mut options = [0; DIO_OPTIONS];
                let (configuration, information) = options.split_at_mut(CONFIGURATION);
                RplOptionRepr::DodagConfiguration {
                    authentication_enabled: false,
                    path_control_size: 0,
                    dio_interval_doublings: config.dio_doublings,
                    dio_interval_min: (config.dio_interval_min_ns / 1_000_000).checked_ilog2().unwrap_or(0)
                        as u8,
                    dio_redundancy_constant: config.dio_redundancy,
                    max_rank_increase: config.max_rank_increase,
                    minimum_hop_rank_increase: config.min_hop_rank_increase,
                    objective_code_point: MRHOF,
                    default_lifetime: lifetime,
                    lifetime_unit: LIFETIME_UNIT,
                }
                .emit(&mut RplOptionPacket::new_unchecked(configuration));
                RplOptionRepr::PrefixInformation {
                    prefix_length: 64,
                    on_link: false,
                    autonomous_address_configuration: true,
                    router_address: false,
                    valid_lifetime: u32::MAX,
                    preferred_lifetime: u32::MAX,
                    destination_prefix: &prefix,
                }
                .emit(&mut RplOptionPacket::new_unchecked(information));
                #[expect(clippy::default_trait_access, reason = "smoltcp does not export the type")]
                let dio = RplRepr::DodagInformationObject {
                    rpl_instance_id: RplInstanceId::Global(0),
                    version_number: Sequence::START.get(),
                    rank,
                    grounded: true,
                    // Storing, without multicast.
                    mode_of_operation: Default::default(),
                    dodag_preference: 0,
                    dtsn: dtsn.get(),
                    dodag_id: Ipv6Address::from(root),
                    options: &options,
                };
                append(&dio, addresses, bytes);
            }
            Self::Dao { root, target, sequence, no_path } => {
                let mut options = [0; DAO_OPTIONS];
                let (first, second) = options.split_at_mut(TARGET);
                RplOptionRepr::RplTarget { prefix_length: 128, prefix: Ipv6Address::from(address(target)) }
                    .emit(&mut RplOptionPacket::new_unchecked(first));
                RplOptionRepr::TransitInformation {
                    external: false,
                    path_control: 0,
                    path_sequence: 0,
                    path_lifetime: if no_path { 0 } else { lifetime },
                    parent_address: None,
                }
                .emit(&mut RplOptionPacket::new_unchecked(second));
                let dao = RplRepr::DestinationAdvertisementObject {
                    rpl_instance_id: RplInstanceId::Global(0),
                    expect_ack: false,
                    sequence: sequence.get(),
                    dodag_id: Some(Ipv6Address::from(address(root))),
                    options: &options,
                };
                append(&dao, addresses, bytes);
            }
        }
    }
}

/// A route's lifetime as a DAO says it; 0 would be a no-path DAO, and 255 is for ever.
fn lifetime_units(config: &RplConfig) -> u8 {
    (config.route_lifetime_ns / 1_000_000_000 / u64::from(LIFETIME_UNIT)).clamp(1, 255) as u8
}

fn append(message: &RplRepr<'_>, (source, dest): (Ipv6Address, Ipv6Address), bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.resize(start + message.buffer_len(), 0);
    Icmpv6Repr::Rpl(*message).emit(
        &source,
        &dest,
        &mut Icmpv6Packet::new_unchecked(&mut bytes[start..]),
        &ChecksumCapabilities::default(),
    );
}
