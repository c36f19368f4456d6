use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::Mutex as AsyncMutex;

use super::*;

/// A confirmable GET with the Message ID 0x1234 and the token 0xaa.
const GET: [u8; 5] = [0x41, 0x01, 0x12, 0x34, 0xaa];

/// A transport that notes what departs, and hands on what a test puts in.
struct Line {
    sent: Mutex<Vec<(Clock, Vec<u8>)>>,
    arriving: AsyncMutex<UnboundedReceiver<Vec<u8>>>,
}

#[async_trait]
impl ClientTransport for Line {
    async fn recv(&self, buf: &mut [u8]) -> io::Result<(usize, Option<SocketAddr>)> {
        let datagram = self.arriving.lock().await.recv().await.ok_or(io::ErrorKind::BrokenPipe)?;
        buf[..datagram.len()].copy_from_slice(&datagram);
        Ok((datagram.len(), None))
    }

    async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.sent.lock().unwrap().push((Clock::now(), buf.to_vec()));
        Ok(buf.len())
    }
}

fn line(mechanism: &str) -> (Adaptive<Line>, UnboundedSender<Vec<u8>>) {
    let (put, arriving) = unbounded_channel();
    let line = Line { sent: Mutex::default(), arriving: AsyncMutex::new(arriving) };
    (Adaptive::new(line, mechanism.parse().unwrap()), put)
}

fn sent(adaptive: &Adaptive<Line>) -> Vec<(Clock, Vec<u8>)> {
    adaptive.peer.transport.sent.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_retransmitted_four_times_and_given_up_no_sooner_than_by_the_rfc() {
    let (adaptive, _put) = line("default");
    let begun = Clock::now();
    adaptive.send(&GET).await.unwrap();
    sleep(Duration::from_secs(61)).await;
    assert_eq!(adaptive.peer.kept().open.len(), 1, "62 s have not passed");
    sleep(Duration::from_secs(40)).await;
    assert!(adaptive.peer.kept().open.is_empty() && adaptive.peer.kept().is_silent);
    let after: Vec<f64> = sent(&adaptive).iter().map(|(at, _)| (*at - begun).as_secs_f64()).collect();
    assert_eq!(after.len(), 5);
    let first = after[1];
    assert!((2.0..=3.01).contains(&first), "{after:?}");
    for (copy, factor) in [(2, 3.0), (3, 7.0), (4, 15.0)] {
        assert!((after[copy] - factor * first).abs() < 0.05, "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quick_mechanism_is_as_patient() {
    let (adaptive, put) = line("ebb");
    for number in 0..20 {
        let mut get = GET;
        get[3] = number;
        adaptive.send(&get).await.unwrap();
        sleep(Duration::from_millis(80)).await;
        put.send(vec![0x61, 0x45, 0x12, number, 0xaa]).unwrap();
        adaptive.recv(&mut [0; 64]).await.unwrap();
    }
    let before = sent(&adaptive).len();
    let begun = Clock::now();
    adaptive.send(&GET).await.unwrap();
    sleep(Duration::from_secs(61)).await;
    assert_eq!(adaptive.peer.kept().open.len(), 1);
    sleep(Duration::from_secs(40)).await;
    assert!(adaptive.peer.kept().open.is_empty());
    let all = &sent(&adaptive)[before..];
    assert_eq!(all.len(), 6, "one copy more, when RFC 7252 would send its last");
    assert!((all[1].0 - begun).as_secs_f64() < 0.5, "it has learnt the round trip of 80 ms");
    assert!((44.9..45.2).contains(&(all[5].0 - begun).as_secs_f64()));
}

#[tokio::test(start_paused = true)]
async fn copies_of_coap_rs_itself_are_held_back() {
    let (adaptive, _put) = line("default");
    for _ in 0..3 {
        assert_eq!(adaptive.send(&GET).await.unwrap(), GET.len());
    }
    assert_eq!(sent(&adaptive).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_mark_of_a_copy_is_taken_off_its_answer() {
    for (mechanism, first) in
        [("ebb", &GET[..]), ("fasor-token:marking=token", &[0x42, 0x01, 0x12, 0x34, 0xaa, 0])]
    {
        mark(mechanism, first).await;
    }
}

async fn mark(mechanism: &str, first: &[u8]) {
    let (adaptive, put) = line(mechanism);
    adaptive.send(&GET).await.unwrap();
    sleep(Duration::from_secs(4)).await;
    assert_eq!(sent(&adaptive)[0].1, first);
    assert_eq!(sent(&adaptive)[1].1, [0x42, 0x01, 0x12, 0x34, 0xaa, 1]);
    put.send(vec![0x62, 0x45, 0x12, 0x34, 0xaa, 1, 0xff, b'x']).unwrap();
    let mut buffer = [0; 64];
    let (length, _) = adaptive.recv(&mut buffer).await.unwrap();
    assert_eq!(buffer[..length], [0x61, 0x45, 0x12, 0x34, 0xaa, 0xff, b'x']);
    assert!(adaptive.peer.kept().open.is_empty());
    assert!(adaptive.peer.mechanism.gauges(&adaptive.peer.kept().state).srtt.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_empty_acknowledgement_ends_the_retransmissions_and_other_datagrams_pass() {
    let (adaptive, put) = line("cocoa");
    adaptive.send(&[0x51, 0x01, 0x12, 0x35, 0xbb]).await.unwrap();
    assert!(adaptive.peer.kept().open.is_empty(), "a non-confirmable request");
    adaptive.send(&GET).await.unwrap();
    for stranger in [&[0x61, 0x45, 0x77, 0x77, 0xbb][..], &[1, 2], &[0x60, 0x00, 0x12, 0x34]] {
        put.send(stranger.to_vec()).unwrap();
        let (length, _) = adaptive.recv(&mut [0; 64]).await.unwrap();
        assert_eq!(length, stranger.len());
    }
    sleep(Duration::from_secs(100)).await;
    assert_eq!(sent(&adaptive).len(), 2);
}
