//! A block-wise transfer with an arbitrary peer: both sides keep their bounds, and every transfer ends.
#![no_main]

use arbitrary::Arbitrary;
use coapace_control::{Duration, Instant};
use coapace_proto::block::{Assembled, Block, Bounds, Progress, Reassembly, Slice, Transfer};
use coapace_proto::{Code, Kind, Message, Options};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Script<'a> {
    body: &'a [u8],
    szx: u8,
    max_body: u8,
    /// The code of each response, and the bytes of its options and payload.
    responses: Vec<(u8, &'a [u8])>,
    /// For each request its client, code, seconds since the last one, and the bytes of its options and payload.
    requests: Vec<(u8, u8, u8, &'a [u8])>,
    asked: u32,
}

fn message(code: u8, tail: &[u8]) -> Message<'_> {
    Message { code: Code(code), tail, ..Message::empty(Kind::Confirmable, 1) }
}

fuzz_target!(|script: Script<'_>| {
    let max_body = usize::from(script.max_body);
    let mut transfer = Transfer::new(Options::default(), script.body.to_vec(), script.szx, max_body);
    for (code, tail) in &script.responses {
        if let Ok(request) = transfer.request() {
            assert!(message(1, request.as_bytes()).payload().len() <= 1024);
        }
        let progress = transfer.handle(&message(*code, tail));
        assert!(transfer.body().len() <= max_body);
        if progress != Ok(Progress::Continue) {
            assert!(transfer.handle(&message(*code, tail)).is_err(), "it is over");
            break;
        }
    }

    let bounds = Bounds {
        max_bodies: 3,
        max_body,
        max_bytes: 2 * max_body,
        patience: Duration::from_secs(200),
        max_szx: script.szx,
    };
    let mut reassembly = Reassembly::new(bounds);
    let mut now = Instant::ZERO;
    for (from, code, wait, tail) in &script.requests {
        now = now + Duration::from_secs((*wait).into());
        if let Assembled::Whole { body, .. } = reassembly.handle(now, *from, &message(*code, tail)) {
            assert!(body.len() <= max_body);
        }
        assert!(reassembly.len() <= bounds.max_bodies && reassembly.bytes() <= bounds.max_bytes);
    }

    let asked = Block::decode(script.asked).ok();
    if let Some(block) = asked {
        assert_eq!(block.encode(), script.asked & 0xff_ffff);
    }
    if let Some(slice) = Slice::new(script.body, asked, script.szx) {
        assert!(slice.payload.len() <= 16 << script.szx.min(6));
        assert!(slice.options(Options::default()).tail(slice.payload).is_ok());
    }
});
