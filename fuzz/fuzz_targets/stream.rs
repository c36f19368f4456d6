//! A stream of RFC 8323, cut anywhere: the same messages and the same end as in one piece. The same bytes as a frame.
#![no_main]

use arbitrary::Arbitrary;
use coapace_proto::stream::{Broken, Decoder, Signal, StreamMessage};
use coapace_proto::{Code, Token};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Stream<'a> {
    max_message_size: u16,
    cuts: [u8; 6],
    bytes: &'a [u8],
}

/// Bytes that say how long a message is, at most: these are kept before it can be refused.
const LENGTHS: usize = 5;

/// The messages of the stream, how many bytes they took, and how it ended.
#[derive(Debug, PartialEq)]
struct Read {
    messages: Vec<(Code, Token, Vec<u8>)>,
    bytes: usize,
    end: Result<(), Broken>,
}

/// Reads the stream in `pieces`.
fn read<'a>(max_message_size: u16, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut decoder = Decoder::new(max_message_size.into());
    let mut read = Read { messages: Vec::new(), bytes: 0, end: Ok(()) };
    let mut pending = 0;
    for mut piece in pieces {
        while !piece.is_empty() {
            match decoder.read(piece) {
                Ok((taken, message)) => {
                    assert!(0 < taken && taken <= piece.len());
                    pending += taken;
                    if let Some(StreamMessage { code, token, tail }) = message {
                        assert!(pending <= max_message_size.into(), "no message is larger than was promised");
                        read.messages.push((code, token, tail.to_vec()));
                        read.bytes += pending;
                        pending = 0;
                    } else {
                        assert_eq!(taken, piece.len());
                    }
                    assert!(pending <= LENGTHS.max(max_message_size.into()), "more is kept than one message");
                    piece = &piece[taken..];
                }
                Err(broken) => {
                    read.end = Err(broken);
                    return read;
                }
            }
        }
    }
    read
}

/// Pieces whose lengths are `cuts`, over and over; 0 is one piece for all that is left.
fn cut<'a>(mut bytes: &'a [u8], cuts: &[u8; 6]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for &length in cuts.iter().cycle() {
        let length = if length == 0 { bytes.len() } else { bytes.len().min(length.into()) };
        if length == 0 {
            break;
        }
        let (piece, rest) = bytes.split_at(length);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fuzz_target!(|stream: Stream<'_>| {
    let Stream { max_message_size, cuts, bytes } = stream;
    let whole = read(max_message_size, [bytes]);
    assert_eq!(read(max_message_size, cut(bytes, &cuts)), whole);

    let mut written = Vec::new();
    for (code, token, tail) in &whole.messages {
        let message = StreamMessage { code: *code, token: *token, tail };
        message.write(&mut written).expect("it was read with this length");
        if let Ok(Some(signal)) = Signal::read(&message) {
            let mut bytes = Vec::new();
            signal.write(*token, &mut bytes);
            let mut decoder = Decoder::new(u32::MAX);
            let (_, again) = decoder.read(&bytes).expect("a signal of ours");
            assert_eq!(Signal::read(&again.expect("all of it")), Ok(Some(signal)));
        }
    }
    assert_eq!(written, bytes[..whole.bytes], "every length has one encoding");

    if let Ok(message) = StreamMessage::from_frame(bytes) {
        let _ = Signal::read(&message);
        assert_eq!(message.to_frame(), bytes);
    }
});
