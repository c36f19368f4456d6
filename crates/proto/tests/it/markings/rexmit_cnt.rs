//! The option that counts retransmissions (draft-ietf-core-fasor-02 §4.4).

use super::*;

/// The bytes of Rexmit-Cnt after Uri-Path (65020 - 11 = 269 + 0xfce4), with a value of one byte and without a
/// value.
const COUNT: [u8; 3] = [0xe1, 0xfc, 0xe4];
const COUNT_0: [u8; 3] = [0xe0, 0xfc, 0xe4];

#[test]
fn a_first_request_carries_rexmit_cnt_255_and_retransmissions_count_up() {
    let sent = transmissions(&mut running("fasor-option"), 3);
    for (value, (_, bytes)) in [255, 1, 2, 3].into_iter().zip(&sent) {
        assert_eq!(*bytes, get_like(&sent[0].1, b"", &[&COUNT[..], &[value]].concat()));
    }
}

#[test]
fn once_a_peer_echoes_the_option_first_transmissions_carry_an_empty_rexmit_cnt() {
    let mut client = running("fasor-option");
    let sent = transmissions(&mut client, 0);
    answer(&mut client, ms(100), &sent[0].1, &rexmit_cnt(&[255]));
    assert_eq!(srtt(&client), Some(Duration::from_millis(100)), "255 names the first transmission");

    let sent = transmissions(&mut client, 2);
    assert_eq!(sent[0].1, get_like(&sent[0].1, b"", &COUNT_0));
    assert_eq!(sent[1].1, get_like(&sent[0].1, b"", &[&COUNT[..], &[1]].concat()));
    assert_eq!(sent[2].1, get_like(&sent[0].1, b"", &[&COUNT[..], &[2]].concat()));
}

#[test]
fn an_echoed_rexmit_cnt_identifies_the_answered_transmission() {
    for (ordinal, echoed) in [(0, 0), (1, 1), (2, 2)] {
        let mut client = running("fasor-option");
        answers_each(&mut client);
        let sent = transmissions(&mut client, 2);
        let now = sent[2].0 + Duration::from_millis(100);
        assert_eq!(answer(&mut client, now, &sent[ordinal].1, &rexmit_cnt(&[echoed])), token(b"t"));
        assert_eq!(srtt(&client), Some(now.since(sent[ordinal].0)), "echo of {echoed}");
    }
}

#[test]
fn an_echoed_rexmit_cnt_of_a_transmission_not_yet_sent_is_not_a_sample() {
    let mut client = running("fasor-option");
    let sent = transmissions(&mut client, 1);
    answer(&mut client, sent[1].0 + Duration::from_millis(100), &sent[1].1, &rexmit_cnt(&[2]));
    assert_eq!(srtt(&client), None);
}

#[test]
fn a_peer_that_does_not_echo_rexmit_cnt_is_probed_again_after_fifteen_exchanges() {
    let mut client = running("fasor-option");
    let sent = transmissions(&mut client, 1);
    answer(&mut client, sent[1].0 + Duration::from_millis(100), &sent[1].1, b"");
    assert_eq!(srtt(&client), None, "ambiguous, as without a marking");

    let sent = transmissions(&mut client, 1);
    assert_eq!(sent[0].1, get_like(&sent[0].1, b"", b""));
    assert_eq!(sent[1].1, sent[0].1);
    answer(&mut client, sent[1].0 + Duration::from_millis(100), &sent[1].1, &rexmit_cnt(&[1]));
    assert_eq!(srtt(&client), None, "draft-ietf-core-fasor-02 §4.4: the request had none");

    let mut asked = Vec::new();
    for exchange in 2..=17 {
        let sent = transmissions(&mut client, 0);
        asked.extend(count_of(&sent[0].1).map(|count| (exchange, count)));
        answer(&mut client, sent[0].0, &sent[0].1, b"");
    }
    assert_eq!(asked, [(16, 255)]);
}

#[test]
fn a_peer_that_stops_echoing_rexmit_cnt_is_probed_at_once() {
    let mut client = running("fasor-option");
    for (count, tail) in [(255, rexmit_cnt(&[255])), (0, vec![]), (255, rexmit_cnt(&[255])), (0, vec![])] {
        let sent = transmissions(&mut client, 0);
        assert_eq!(count_of(&sent[0].1), Some(count));
        answer(&mut client, sent[0].0, &sent[0].1, &tail);
    }
}

#[test]
fn an_empty_acknowledgement_does_not_count_as_a_missing_echo() {
    let mut client = running("fasor-option");
    let sent = transmissions(&mut client, 0);
    let request = &sent[0].1;
    client.receive(ms(100), &[0x60, 0, request[2], request[3]]).unwrap();
    let separate = reply_to(request, Kind::NonConfirmable, CONTENT, b"");
    assert!(matches!(client.receive(ms(200), &separate), Some(Event::Response { .. })));
    let sent = transmissions(&mut client, 0);
    assert_eq!(count_of(&sent[0].1), Some(0), "whether it echoes is still open");
}

#[test]
fn rexmit_cnt_is_written_after_lower_options_and_before_the_payload() {
    for (tail, marked) in [
        (Tail::default(), b"\xe1\xfc\xef\xff".to_vec()),
        (Tail::default().payload(b"p"), b"\xe1\xfc\xef\xff\xffp".to_vec()),
        (Tail::default().option(11, b"x").payload(b"p"), b"\xb1x\xe1\xfc\xe4\xff\xffp".to_vec()),
        (Tail::default().option(65_007, b"x"), b"\xe1\xfc\xe2x\xd1\x00\xff".to_vec()),
        (Tail::default().option(65_019, b""), b"\xe0\xfc\xee\x11\xff".to_vec()),
        // Rexmit-Cnt is left out before an option with a greater number, which would have to be encoded again.
        (Tail::default().option(65_021, b"x"), b"\xe1\xfc\xf0x".to_vec()),
    ] {
        let mut client = running("fasor-option");
        let request = Request {
            confirmable: true,
            code: GET,
            token: Token::EMPTY,
            tail: tail.as_bytes(),
            repeatable: false,
        };
        client.endpoint.request(ms(0), PEER, request).unwrap();
        let sent = client.sent(ms(0)).unwrap();
        assert_eq!(sent[4..], marked[..], "{tail:02x?}");
        assert!(Message::parse(&sent).is_ok());
    }
}

#[test]
fn a_non_confirmable_request_carries_no_rexmit_cnt() {
    let mut client = running("fasor-option");
    let request = Request { confirmable: false, code: GET, token: token(b"t"), tail: b"", repeatable: false };
    client.endpoint.request(ms(0), PEER, request).unwrap();
    assert_eq!(count_of(&client.sent(ms(0)).unwrap()), None);
}

#[test]
fn a_server_echoes_rexmit_cnt_only_in_piggybacked_responses() {
    let mut client = running("fasor-option");
    let mut server = Client::default();
    let sent = transmissions(&mut client, 1);

    let Some(Event::Request { responder, .. }) = server.receive(ms(0), &sent[0].1) else { panic!() };
    server.endpoint.respond(ms(0), responder, CONTENT, b"\xff!").unwrap();
    let first = server.sent(ms(0)).unwrap();
    assert_eq!(first[4..], *b"t\xe1\xfc\xef\xff\xff!", "its value unmodified, before the payload");

    assert!(server.receive(secs(1), &sent[1].1).is_none());
    let replayed = server.sent(secs(1)).unwrap();
    assert_eq!(count_of(&replayed), Some(1), "a duplicate is answered with the duplicate's own count");

    let non = [&[0x51, GET.0, 0xaa, 0xbb, b't'][..], &rexmit_cnt(&[1])].concat();
    let Some(Event::Request { responder, .. }) = server.receive(secs(2), &non) else { panic!() };
    server.endpoint.respond(secs(2), responder, CONTENT, b"").unwrap();
    assert_eq!(count_of(&server.sent(secs(2)).unwrap()), None);
}

#[test]
fn our_client_and_server_agree_on_rexmit_cnt() {
    let mut client = running("fasor-option");
    let mut server = Client::default();
    let mut counts = Vec::new();
    for at in 0..3 {
        client.get(secs(at), "t");
        let request = client.sent(secs(at)).unwrap();
        counts.push(count_of(&request));
        let Some(Event::Request { responder, .. }) = server.receive(secs(at), &request) else { panic!() };
        server.endpoint.respond(secs(at), responder, CONTENT, b"").unwrap();
        let response = server.sent(secs(at)).unwrap();
        let now = secs(at) + Duration::from_millis(80);
        assert!(matches!(client.receive(now, &response), Some(Event::Response { .. })));
    }
    assert_eq!(counts, [Some(255), Some(0), Some(0)]);
    assert_eq!(srtt(&client), Some(Duration::from_millis(80)));
}

#[test]
fn a_second_rexmit_cnt_option_counts_as_unrecognised() {
    let mut client = running("fasor-option");
    answers_each(&mut client);
    let sent = transmissions(&mut client, 2);
    let now = sent[2].0 + Duration::from_millis(100);
    let twice = Tail::default().option(REXMIT_CNT, &[1]).option(REXMIT_CNT, &[2]).into_bytes();
    answer(&mut client, now, &sent[1].1, &twice);
    assert_eq!(srtt(&client), Some(now.since(sent[1].0)), "RFC 7252 §5.4.5: the first one holds");
}
