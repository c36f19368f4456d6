//! A random life.

use coapace_proto::block::Block;
use coapace_proto::{Code, Kind, Message, Options, Token};
use proptest::prelude::*;

use super::bench::*;
use crate::Face;

/// One step of a random life.
#[derive(Clone, Debug)]
enum Do {
    /// Bytes arrive from a client, or at its port from the server.
    Arrive(bool, u16, Vec<u8>),
    /// A valid request of a client, with Observe below 4, or Block2.
    Ask(u16, Kind, u16, Option<u32>),
    /// The server answers something that it was sent, with Observe below 4, or with a block.
    Answer(prop::sample::Index, Kind, u8, Option<u32>),
    /// A client answers something that it was sent.
    React(prop::sample::Index, Kind),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Do>> {
    let kind = || {
        prop_oneof![
            Just(Kind::Confirmable),
            Just(Kind::NonConfirmable),
            Just(Kind::Acknowledgement),
            Just(Kind::Reset)
        ]
    };
    let extra = || prop::option::of(0..10u32);
    let index = any::<prop::sample::Index>;
    let bytes = prop::collection::vec(any::<u8>(), 0..24);
    prop::collection::vec(
        prop_oneof![
            (any::<bool>(), 0..6u16, bytes).prop_map(|(up, who, bytes)| Do::Arrive(up, who, bytes)),
            (0..6u16, kind(), 0..8u16, extra())
                .prop_map(|(who, kind, id, extra)| Do::Ask(who, kind, id, extra)),
            (index(), kind(), prop::sample::select(vec![0u8, 69, 69, 68, 132]), extra())
                .prop_map(|(which, kind, code, extra)| Do::Answer(which, kind, code, extra)),
            (index(), kind()).prop_map(|(which, kind)| Do::React(which, kind)),
            (0..100_000u64).prop_map(Do::Wait),
        ],
        0..120,
    )
}

proptest! {
    /// Whatever arrives, tables stay within their bounds, no message departs more often than RFC 7252 allows, and in the end
    /// nothing is left.
    #[test]
    fn the_relay_keeps_no_state_after_random_datagrams(
        steps in steps(),
        cc in prop::sample::select(vec!["default", "cocoa", "fasor-token", "fasor-option", "cocoa-i", "rtt-coap"]),
        shares in any::<bool>(),
    ) {
        let mut bench = Bench::with(cc, |config| {
            (config.max_sources, config.max_exchanges, config.max_observers) = (4, 8, 3);
            (config.shares, config.sluice) = (shares, shares);
        });
        let mut log: Vec<SentDatagram> = Vec::new();
        for step in steps {
            let sent = match step {
                Do::Arrive(up, who, bytes) => {
                    bench.arrives(if up { Face::Clients } else { Face::Server }, client(who), &bytes)
                }
                Do::Ask(who, kind, id, extra) => {
                    let options = Options::default().uri_path("t");
                    let options = match extra {
                        Some(number @ 0..4) => options.observe(number),
                        Some(number) => options.block2(Block::new(number - 4, false, 0).unwrap()),
                        None => options,
                    };
                    bench.arrives(Face::Clients, client(who), &request(kind, id, &[id as u8], &options))
                }
                Do::Answer(..) | Do::React(..) if log.is_empty() => continue,
                Do::Answer(which, kind, code, extra) => {
                    let to = which.get(&log).clone();
                    let Ok(message) = Message::parse(&to.bytes) else { continue };
                    let token = if code == 0 { Token::EMPTY } else { message.token };
                    let asked = message.block2().ok().flatten().map_or(0, Block::num);
                    let (options, payload) = match extra.filter(|_| code != 0) {
                        Some(number @ 0..4) => (Options::default().observe(number), &[][..]),
                        Some(number @ 4..9) => {
                            let block = Block::new(asked, number < 8, 0).unwrap();
                            (Options::default().etag(&[(number / 7) as u8]).block2(block), &[7; 16][..])
                        }
                        _ => (Options::default(), &[][..]),
                    };
                    let bytes = loaded(kind, Code(code), message.message_id, &token, &options, payload);
                    bench.arrives(to.face, to.to, &bytes)
                }
                Do::React(which, kind) => {
                    let to = which.get(&log).clone();
                    let Ok(message) = Message::parse(&to.bytes) else { continue };
                    bench.arrives(to.face, to.to, &empty(kind, message.message_id))
                }
                Do::Wait(ms) => bench.wait(ms).into_iter().map(|(_, sent)| sent).collect(),
            };
            log.extend(sent);
            let report = bench.relay.report();
            prop_assert!(report.sources <= 4 && report.lines <= 8 + 8 + 3, "{report:?}");
            while bench.relay.poll_closed().is_some() {}
        }
        // Observations stay; all else ends.
        bench.wait(4_000_000);
        let report = bench.relay.report();
        prop_assert!(report.lines <= 3, "{report:?}");
        for face in Face::BOTH {
            prop_assert_eq!(bench.relay.half(face).endpoint.exchanges(), 0);
        }
        prop_assert_eq!(bench.relay.poll_timeout(), None);
    }
}
