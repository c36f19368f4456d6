//! Many blocks in one message (RFC 8323 §6).

use super::*;

/// Returns the lengths of the payloads that carry a body and a representation over a reliable transport.
fn reliably(body: &[u8], representation: &[u8], room: usize) -> (Vec<usize>, Vec<usize>) {
    let mut transfer = Transfer::reliable(Options::default(), body.to_vec(), room, 1 << 20);
    let bounds = Bounds { max_szx: BERT, max_body: 1 << 20, max_bytes: 1 << 20, ..Bounds::default() };
    let mut reassembly = Reassembly::new(bounds);
    let (mut requests, mut responses) = (Vec::new(), Vec::new());
    let mut taken = None;
    loop {
        let request = transfer.request().unwrap();
        let request = message(POST, request.as_bytes());
        assert!(request.payload().len() <= room);
        requests.push(request.payload().len());
        let (code, answer) = match reassembly.handle(NOW, 1, &request) {
            Assembled::Answer { code, tail } => (code, tail),
            Assembled::Taken => panic!("it has no Q-Block1"),
            Assembled::Whole { body, block } => {
                taken.get_or_insert(body.into_owned());
                let slice = Slice::reliable(representation, request.block2_reliable(), room + 22).unwrap();
                responses.push(slice.payload.len());
                let options = block.into_iter().fold(Options::default(), Options::block1);
                (CONTENT, tail(slice.options(options), slice.payload))
            }
        };
        if transfer.handle(&message(code, answer.as_bytes())).unwrap() == Progress::Complete {
            break;
        }
    }
    assert_eq!((taken.as_deref(), transfer.body()), (Some(body), representation));
    (requests, responses)
}

#[test]
fn bert_fills_a_message_with_as_many_blocks_as_fit() {
    let (requests, responses) = reliably(&body(10_000), &body(5_000), 4_500);
    assert_eq!((requests, responses), (vec![4_096, 4_096, 1_808, 0], vec![4_096, 904]));
    let (requests, responses) = reliably(&body(4_500), &body(4_500), 4_500);
    assert_eq!((requests, responses), (vec![4_500], vec![4_500]), "what fits is not cut");
}

#[test]
fn without_room_for_a_bert_block_smaller_blocks_are_used() {
    let (requests, responses) = reliably(&body(600), &body(400), 300);
    assert_eq!((requests, responses), (vec![256, 256, 88, 0], vec![256, 144]));
}

#[test]
fn a_bert_block_before_the_last_is_a_multiple_of_1024_bytes() {
    for (len, full) in [(0, false), (1_023, false), (1_024, true), (1_025, false), (3_072, true)] {
        assert_eq!(block(0, true, BERT).admits(len), full, "{len}");
        assert!(block(0, false, BERT).admits(len));
    }
    assert_eq!(block(3, true, BERT).offset(), 3_072);
    assert!(Block::decode(7).is_err() && Block::decode_reliable(7) == block(0, false, BERT));
}

proptest! {
    #[test]
    fn bert_reassembles_bodies_from_blocks_of_any_length(up in 0_usize..9_000, down in 0_usize..9_000, room in 16_usize..5_000) {
        reliably(&body(up), &body(down), room);
    }
}
