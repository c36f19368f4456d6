//! The messages of RPL (RFC 6550 §6), and their bytes.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Icmpv6Packet, Icmpv6Repr, Ipv6Address, RplInstanceId, RplOptionPacket, RplOptionRepr, RplRepr,
};

use super::LollipopCounter;
use crate::NodeId;
use crate::mesh::RplConfig;

/// A message between neighbours. The instance is 0, and the version of the DODAG never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RplMessage {
    /// A request to all neighbours to announce a DODAG.
    Dis,
    /// The announcement of a DODAG.
    Dio {
        /// The root of the DODAG.
        root: NodeId,
        /// The rank of the sender. A sender with [`INFINITE_RANK`](super::INFINITE_RANK) cannot be a parent.
        rank: u16,
        /// The DTSN. A higher number than before asks the children for DAOs.
        dtsn: LollipopCounter,
    },
    /// The announcement that a node can be reached through the sender.
    Dao {
        /// The root of the DODAG.
        root: NodeId,
        /// The node that can be reached.
        target: NodeId,
        /// The count of the sender's DAOs.
        sequence: LollipopCounter,
        /// The count of the DAOs that the target began. Nodes that pass a DAO on do not change it.
        path: LollipopCounter,
        /// True if the target can no longer be reached.
        no_path: bool,
    },
}

/// The objective code point of MRHOF (RFC 6719 §6).
const MRHOF: u16 = 1;
/// The unit of route lifetimes, in seconds, like in Contiki.
const LIFETIME_UNIT: u16 = 60;
/// The length in bytes of a DODAG Configuration option (RFC 6550 §6.7.6).
const CONFIGURATION: usize = 16;
/// The length in bytes of a DODAG Configuration option and a Prefix Information option (RFC 6550 §6.7.10).
const DIO_OPTIONS: usize = CONFIGURATION + 32;
/// The length in bytes of an RPL Target option (RFC 6550 §6.7.7).
const TARGET: usize = 20;
/// The length in bytes of an RPL Target option and a Transit Information option (RFC 6550 §6.7.8).
const DAO_OPTIONS: usize = TARGET + 6;

impl RplMessage {
    /// Returns the name in traces: `dis`, `dio` or `dao`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Dis => "dis",
            Self::Dio { .. } => "dio",
            Self::Dao { .. } => "dao",
        }
    }

    /// Appends the ICMPv6 message with its checksum, in the form of Contiki: a DIO with the configuration of the DODAG and the
    /// /64 of its root, a DAO with the identifier of the DODAG and one target.
    ///
    /// `source` and `dest` are the addresses of the packet, which the checksum covers. `address` returns the global address
    /// of a node.
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
                // The mesh has one /64, which is the prefix of its root.
                let mut prefix = [0; 16];
                prefix[..8].copy_from_slice(&root[..8]);
                let mut options = [0; DIO_OPTIONS];
                let (configuration, information) = options.split_at_mut(CONFIGURATION);
                RplOptionRepr::DodagConfiguration {
                    authentication_enabled: false,
                    path_control_size: 0,
                    dio_interval_doublings: config.dio_doublings,
                    // The field is an exponent: Imin is 2^DIOIntervalMin ms (RFC 6550 §8.3.1).
                    dio_interval_min: (config.dio_interval_min.as_micros() / 1_000)
                        .checked_ilog2()
                        .unwrap_or(0) as u8,
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
                    // Nodes make their addresses from the prefix, but reach each other only through RPL.
                    on_link: false,
                    autonomous_address_configuration: true,
                    router_address: false,
                    // All ones are infinity (RFC 4861 §4.6.2): nodes keep their addresses.
                    valid_lifetime: u32::MAX,
                    preferred_lifetime: u32::MAX,
                    destination_prefix: &prefix,
                }
                .emit(&mut RplOptionPacket::new_unchecked(information));
                #[expect(clippy::default_trait_access, reason = "smoltcp does not export the type")]
                let dio = RplRepr::DodagInformationObject {
                    rpl_instance_id: RplInstanceId::Global(0),
                    version_number: LollipopCounter::START.get(),
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
            Self::Dao { root, target, sequence, path, no_path } => {
                let mut options = [0; DAO_OPTIONS];
                let (first, second) = options.split_at_mut(TARGET);
                RplOptionRepr::RplTarget { prefix_length: 128, prefix: Ipv6Address::from(address(target)) }
                    .emit(&mut RplOptionPacket::new_unchecked(first));
                RplOptionRepr::TransitInformation {
                    external: false,
                    path_control: 0,
                    path_sequence: path.get(),
                    // A lifetime of 0 makes this a no-path DAO (RFC 6550 §6.7.8).
                    path_lifetime: if no_path { 0 } else { lifetime },
                    // The storing mode does not name the parent: the DAO goes to it.
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

/// Returns the lifetime of a route in the units of a DAO. 0 would be a no-path DAO, and 255 is infinite.
fn lifetime_units(config: &RplConfig) -> u8 {
    (config.route_lifetime.as_micros() / 1_000_000 / u64::from(LIFETIME_UNIT)).clamp(1, 255) as u8
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

#[cfg(test)]
mod tests {
    use smoltcp::wire::RplInstanceId;

    use super::*;
    use crate::Span;
    use crate::mesh::rpl::INFINITE_RANK;

    const CONFIG: RplConfig = RplConfig::CONTIKI_3;
    const SOURCE: [u8; 16] = link_local(7);
    const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a];
    const DIO: RplMessage = RplMessage::Dio { root: NodeId(1), rank: 384, dtsn: LollipopCounter::START };

    const fn dao(no_path: bool) -> RplMessage {
        let (sequence, path) = (LollipopCounter::START, LollipopCounter::START.next());
        RplMessage::Dao { root: NodeId(1), target: NodeId(9), sequence, path, no_path }
    }

    const fn link_local(node: u8) -> [u8; 16] {
        [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, node]
    }

    fn address(node: NodeId) -> [u8; 16] {
        let mut address = link_local(node.0 as u8);
        address[..4].copy_from_slice(&[0xfd, 0, 0, 1]);
        address
    }

    fn written(message: RplMessage) -> Vec<u8> {
        let mut bytes = vec![0xaa];
        message.write(&CONFIG, (SOURCE, ALL_NODES), address, &mut bytes);
        assert_eq!(bytes.remove(0), 0xaa, "earlier bytes stay");
        bytes
    }

    /// Returns the message that smoltcp reads, after it has verified the checksum.
    fn read(bytes: &[u8]) -> RplRepr<'_> {
        let (source, dest) = (Ipv6Address::from(SOURCE), Ipv6Address::from(ALL_NODES));
        let packet = Icmpv6Packet::new_checked(bytes).unwrap();
        match Icmpv6Repr::parse(&source, &dest, &packet, &ChecksumCapabilities::default()).unwrap() {
            Icmpv6Repr::Rpl(message) => message,
            other => panic!("{other:?}"),
        }
    }

    fn options(mut bytes: &[u8]) -> Vec<RplOptionRepr<'_>> {
        let mut options = Vec::new();
        while !bytes.is_empty() {
            let packet = RplOptionPacket::new_checked(bytes).unwrap();
            options.push(RplOptionRepr::parse(&packet).unwrap());
            bytes = packet.next_option().unwrap_or_default();
        }
        options
    }

    #[test]
    fn a_dio_carries_the_dodag_configuration_and_its_prefix() {
        let bytes = written(DIO);
        // 4 of ICMPv6, 24 of the DIO, 16 of configuration, 32 of prefix.
        assert_eq!((bytes.len(), &bytes[..2]), (76, &[155, 1][..]));
        let RplRepr::DodagInformationObject { rank, grounded, dtsn, dodag_id, options: rest, .. } =
            read(&bytes)
        else {
            panic!("{bytes:?}")
        };
        assert_eq!((rank, grounded, dtsn, dodag_id.octets()), (384, true, 240, address(NodeId(1))));
        // G, and the mode of operation: 2, storing without multicast.
        assert_eq!(bytes[8], 0x80 | 2 << 3);
        let [configuration, prefix] = options(rest)[..] else { panic!("{rest:?}") };
        assert_eq!(
            configuration,
            RplOptionRepr::DodagConfiguration {
                authentication_enabled: false,
                path_control_size: 0,
                dio_interval_doublings: 8,
                dio_interval_min: 12,
                dio_redundancy_constant: 10,
                max_rank_increase: 896,
                minimum_hop_rank_increase: 128,
                objective_code_point: 1,
                default_lifetime: 30,
                lifetime_unit: 60,
            }
        );
        let RplOptionRepr::PrefixInformation { prefix_length, destination_prefix, .. } = prefix else {
            panic!("{prefix:?}")
        };
        assert_eq!((prefix_length, &destination_prefix[..8]), (64, &address(NodeId(1))[..8]));
        assert_eq!(destination_prefix[8..], [0; 8]);
    }

    #[test]
    fn a_dao_names_its_target_and_a_no_path_dao_has_no_lifetime() {
        for no_path in [false, true] {
            let bytes = written(dao(no_path));
            // 4 of ICMPv6, 20 of the DAO, 20 of the target, 6 of transit information.
            assert_eq!((bytes.len(), &bytes[..2]), (50, &[155, 2][..]));
            let RplRepr::DestinationAdvertisementObject {
                rpl_instance_id,
                expect_ack,
                sequence,
                dodag_id,
                options: rest,
            } = read(&bytes)
            else {
                panic!("{bytes:?}")
            };
            assert_eq!((rpl_instance_id, expect_ack, sequence), (RplInstanceId::Global(0), false, 240));
            assert_eq!(dodag_id, Some(Ipv6Address::from(address(NodeId(1)))));
            let [target, transit] = options(rest)[..] else { panic!("{rest:?}") };
            let prefix = Ipv6Address::from(address(NodeId(9)));
            assert_eq!(target, RplOptionRepr::RplTarget { prefix_length: 128, prefix });
            let RplOptionRepr::TransitInformation { path_sequence, path_lifetime, parent_address, .. } =
                transit
            else {
                panic!("{transit:?}")
            };
            assert_eq!((path_sequence, path_lifetime), (241, if no_path { 0 } else { 30 }));
            assert_eq!(parent_address, None);
        }
    }

    #[test]
    fn an_rpl_dis_message_has_six_bytes() {
        let bytes = written(RplMessage::Dis);
        assert_eq!((bytes.len(), &bytes[..2]), (6, &[155, 0][..]));
        assert!(matches!(read(&bytes), RplRepr::DodagInformationSolicitation { options: [] }));
    }

    #[test]
    fn a_route_lifetime_is_never_encoded_as_zero() {
        for (seconds, units) in [(0, 1), (59, 1), (1_800, 30), (1_000_000, 255)] {
            let config = RplConfig { route_lifetime: Span::from_secs(seconds), ..CONFIG };
            assert_eq!(lifetime_units(&config), units);
        }
    }

    /// Returns a capture of IPv6 packets (link type 229), one of each message.
    fn capture() -> Vec<u8> {
        let mut capture = Vec::new();
        for word in [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 229] {
            capture.extend_from_slice(&word.to_le_bytes());
        }
        let poison = RplMessage::Dio { root: NodeId(1), rank: INFINITE_RANK, dtsn: LollipopCounter::START };
        for message in [RplMessage::Dis, DIO, poison, dao(false)] {
            let message = written(message);
            for word in [0, 0, 40 + message.len() as u32, 40 + message.len() as u32] {
                capture.extend_from_slice(&word.to_le_bytes());
            }
            capture.extend_from_slice(&[0x60, 0, 0, 0, 0, message.len() as u8, 58, 64]);
            capture.extend_from_slice(&SOURCE);
            capture.extend_from_slice(&ALL_NODES);
            capture.extend_from_slice(&message);
        }
        capture
    }

    #[test]
    fn tshark_decodes_every_rpl_message_without_errors() {
        let path = std::env::temp_dir().join(format!("coapace-rpl-{}.pcap", std::process::id()));
        std::fs::write(&path, capture()).unwrap();
        let fields = [
            "icmpv6.code",
            "icmpv6.checksum.status",
            "icmpv6.rpl.dio.rank",
            "icmpv6.rpl.opt.config.min_hop_rank_inc",
            "icmpv6.rpl.opt.target.prefix",
            "_ws.expert",
        ];
        let mut tshark = std::process::Command::new("tshark");
        tshark
            .args(["-T", "fields"])
            .args(fields.iter().flat_map(|field| ["-e", field]))
            .arg("-r")
            .arg(&path);
        let output = tshark.output();
        std::fs::remove_file(&path).unwrap();
        let Ok(output) = output else {
            println!("skipped: no tshark");
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(
            lines,
            [
                ["0", "1", "", "", "", ""],
                ["1", "1", "384", "128", "", ""],
                ["1", "1", "65535", "128", "", ""],
                ["2", "1", "", "", "fd00:1::200:0:0:9", ""],
            ],
            "{text}"
        );
    }
}
