//! A stream of RFC 8323, cut anywhere: messages and end are equal to those of the whole. The bytes are also read as a frame.
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

/// The most bytes that tell the length of a message. They are kept before a message can be refused.
const LENGTHS: usize = 5;

/// The messages of a stream, the bytes they took, and how the stream ended.
#[derive(Debug, PartialEq)]
struct Read {
    messages: Vec<(Code, Token, Vec<u8>)>,
    bytes: usize,
    end: Result<(), Broken>,
}

/// Reads a stream in `pieces`.
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

/// Cuts the bytes into pieces of the lengths `cuts`, repeated; 0 stands for the whole rest.
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
