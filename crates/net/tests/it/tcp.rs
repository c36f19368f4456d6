//! `coap+tcp` over loopback and with libcoap at the other end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Running, echo, libcoap_answers, run, until};
use coapace_net::{
    Budget, Client, Code, Error, Rejection, Request, Resource, Response, Router, Server, ServerConfig,
};
use tokio::time::{sleep, timeout};

fn serve(config: ServerConfig) -> Running {
    let router = Router::new()
        .get("/hello", |_| async { Ok::<_, Rejection>(Response::content("Hello!")) })
        .get("/large", |_| async { Ok::<_, Rejection>(Response::content(vec![b'x'; 2_000])) })
        .get("/slow", |_| async {
            sleep(Duration::from_millis(200)).await;
            Ok::<_, Rejection>(Response::content("done"))
        })
        .get("/panic", |request: Request| async move {
            assert!(request.payload() != b"", "as asked");
            Ok::<_, Rejection>(Response::content(""))
        })
        .post("/echo", echo);
    start(router, config)
}

fn start(router: Router, config: ServerConfig) -> Running {
    run("coap+tcp", Server::bind_tcp("127.0.0.1:0", config), router)
}

#[tokio::test]
async fn concurrent_requests_share_a_connection_and_finish_in_any_sequence() {
    let server = serve(ServerConfig::default());
    let client = Client::new();
    let (slow, hello) = (server.uri("/slow"), server.uri("/hello"));
    let (slow, hello) = tokio::join!(client.get(&slow).into_future(), client.get(&hello).into_future());
    let (slow, hello) = (slow.unwrap(), hello.unwrap());
    assert_eq!((slow.text().as_ref(), hello.text().as_ref()), ("done", "Hello!"));
    assert!(hello.elapsed < slow.elapsed);
    client.ping(&server.uri("/")).await.unwrap();
    assert_eq!(client.get(&server.uri("/nowhere")).await.unwrap().code, Code::NOT_FOUND);
    assert_eq!(client.get(&server.uri("/panic")).await.unwrap().code, Code::INTERNAL_SERVER_ERROR);
    let counted = server.handle.stats().tcp;
    assert_eq!((counted.connections, counted.requests, counted.panics), (1, 4, 1));
    assert!(server.handle.metrics().to_string().contains("\ncoap_handler_panics_total 1\n"));
}

#[tokio::test]
async fn payloads_up_to_the_largest_message_pass_over_tcp() {
    let server = serve(ServerConfig::default());
    let client = Client::new();
    for len in [0, 1, 2_000, 20_000, 65_000] {
        let payload = vec![7; len];
        let response = client.post(&server.uri("/echo")).payload(payload.clone()).await.unwrap();
        assert_eq!(response.payload, payload, "{len}");
    }
}

#[tokio::test]
async fn many_tasks_send_requests_over_tcp_at_once() {
    let server = serve(ServerConfig::default());
    let client = Client::new();
    let uri = server.uri("/slow");
    let calls: Vec<_> = (0..500).map(|_| tokio::spawn(client.get(&uri).into_future())).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text(), "done");
    }
    assert_eq!(server.handle.stats().tcp.connections, 1);
}

#[tokio::test]
async fn a_closed_tcp_port_is_an_error_at_once() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::new().get(&format!("coap+tcp://{address}/")).await.unwrap_err();
    assert!(matches!(error, Error::Connection(io::ErrorKind::ConnectionRefused)), "{error:?}");
}

/// Reads a message of up to 12 bytes of options and payload.
fn message(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = vec![0];
    stream.read_exact(&mut bytes).unwrap();
    bytes.resize(2 + usize::from(bytes[0] >> 4) + usize::from(bytes[0] & 15), 0);
    stream.read_exact(&mut bytes[1..]).unwrap();
    bytes
}

/// Accepts a client, and exchanges CSMs.
fn greeted(listener: &std::net::TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(b"\x00\xe1").unwrap();
    assert_eq!(message(&mut stream)[1], 0xe1, "a CSM");
    stream
}

/// A server that is bytes.
#[tokio::test]
async fn an_observation_is_deregistered_after_a_notification_with_an_unknown_critical_option() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap+tcp://{}/x", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut stream = greeted(&listener);
        let registration = message(&mut stream);
        assert!(registration.ends_with(b"\x60\x51x"), "Observe: 0, Uri-Path: x");
        let token = &registration[2..6];
        // Observe; the second with option 9, which is critical and nobody's.
        let both = [b"\x24\x45", token, b"\x61\x01", b"\x34\x45", token, b"\x61\x02\x30"].concat();
        stream.write_all(&both).unwrap();
        let farewell = message(&mut stream);
        assert_eq!(farewell[2..], [token, b"\x61\x01\x51x"].concat(), "RFC 8323 §7.4");
    });
    let client = Client::new();
    let mut observation = client.observe(&uri).await.unwrap();
    let error = observation.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::BadOption(9)), "{error}");
    assert!(observation.next().await.is_none());
    drop(observation);
    tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
}

/// A server that is bytes.
#[tokio::test]
async fn an_observation_is_deregistered_if_its_first_response_is_rejected_or_not_awaited() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap+tcp://{}/x", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut stream = greeted(&listener);
        for answer in [Some(b"\x61\x01\x30"), None] {
            let registration = message(&mut stream);
            assert!(registration.ends_with(b"\x60\x51x"), "Observe: 0, Uri-Path: x");
            let token = &registration[2..6];
            if let Some(options) = answer {
                // Observe, and option 9, which is critical and nobody's.
                stream.write_all(&[b"\x34\x45", token, options].concat()).unwrap();
            }
            let farewell = message(&mut stream);
            assert_eq!(farewell[2..], [token, b"\x61\x01\x51x"].concat(), "RFC 8323 §7.4");
        }
    });
    let client = Client::new();
    let error = client.observe(&uri).await.unwrap_err();
    assert!(matches!(error, Error::BadOption(9)), "{error}");
    let error = client.get(&uri).timeout(Duration::from_millis(200)).observe().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut), "{error}");
    tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
}

/// A server that is bytes.
#[tokio::test]
async fn a_message_in_the_same_segment_as_the_csm_is_handled() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap+tcp://{}/x", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let accept = |with: &[u8]| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            stream.write_all(&[b"\x00\xe1", with].concat()).unwrap();
            assert_eq!(message(&mut stream)[1], 0xe1, "a CSM");
            stream
        };
        let mut stream = accept(b"\x01\x01\x07");
        assert_eq!(message(&mut stream), b"\x01\xa1\x07", "5.01 to the server's GET");
        let request = message(&mut stream);
        stream.write_all(&[b"\x04\x45", &request[2..6]].concat()).unwrap();
        drop(stream);
        let mut rest = Vec::new();
        accept(b"\x00\xe4").read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"", "no request after the server's Release (RFC 8323 §5.5)");
    });
    assert_eq!(Client::new().get(&uri).await.unwrap().code, Code::CONTENT);
    let error = Client::new().get(&uri).await.unwrap_err();
    assert!(matches!(error, Error::Connection(io::ErrorKind::ConnectionAborted)), "{error:?}");
    tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
}

/// A server that is bytes.
#[tokio::test]
async fn responses_before_a_signal_that_ends_the_connection_reach_their_callers() {
    // Abort, Release, and a message with an option of the reserved length 15.
    for signal in [&b"\x00\xe5"[..], b"\x00\xe4", b"\x10\x45\xf0"] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("coap+tcp://{}/x", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut stream = greeted(&listener);
            let registration = message(&mut stream);
            // Observe, in the response and in a notification.
            let observe = [b"\x24\x45", &registration[2..6], b"\x61\x01"].concat();
            stream.write_all(&observe).unwrap();
            let request = message(&mut stream);
            let response = [b"\x04\x45", &request[2..6]].concat();
            stream.write_all(&[&observe, &response, signal].concat()).unwrap();
            stream
        });
        let client = Client::new();
        let mut seen = client.observe(&uri).await.unwrap();
        let response = client.post(&uri).timeout(Duration::from_secs(5)).await;
        assert_eq!(response.unwrap().code, Code::CONTENT, "{signal:x?}");
        let news = timeout(Duration::from_secs(60), seen.next()).await.expect("within 60 s");
        assert_eq!(news.unwrap().unwrap().code, Code::CONTENT, "{signal:x?}");
        tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
    }
}

/// A server that is bytes.
#[tokio::test]
async fn a_request_or_empty_message_with_a_known_token_is_not_taken_as_a_response() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut stream = greeted(&listener);
        let request = message(&mut stream);
        assert_eq!((request[0], request[1]), (0x24, 1));
        let token = request[2..6].to_vec();
        let with = |code: u8, tail: &[u8]| [&[(tail.len() as u8) << 4 | 4, code], &token[..], tail].concat();
        stream.write_all(&[with(0, b""), with(1, b"\xb1y"), with(0x45, b"\xff!")].concat()).unwrap();
        assert_eq!(message(&mut stream), with(0xa1, b""), "5.01");
    });
    let response = Client::new().get(&format!("coap+tcp://{address}/x")).await.unwrap();
    assert_eq!((response.code, response.text().as_ref()), (Code::CONTENT, "!"));
    tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_answers_running_requests_and_then_closes_the_connection() {
    let mut server = serve(ServerConfig::default());
    let client = Client::new();
    let call = tokio::spawn(client.get(&server.uri("/slow")).into_future());
    until(|| server.handle.stats().tcp.requests == 1).await;
    server.handle.shutdown();
    assert_eq!(call.await.unwrap().unwrap().text(), "done");
    timeout(Duration::from_secs(5), server.ended()).await.expect("it ends").unwrap();
    let error = client.get(&server.uri("/hello")).await.unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error:?}");
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_the_next_request_opens_another() {
    let server = serve(ServerConfig { idle_timeout: Duration::from_millis(100), ..ServerConfig::default() });
    let client = Client::new();
    for nth in 1..=2 {
        client.get(&server.uri("/hello")).await.unwrap();
        until(|| server.handle.stats().tcp.idle == nth).await;
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.handle.stats().tcp.connections, 2);
}

/// Returns the bytes that a server sends after these until it closes the connection.
fn answer_to(server: &Running, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// A connection whose client says that it takes messages of any size.
fn greedy(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[0x60, 0xe1, 0x24, 0xff, 0xff, 0xff, 0xff, 0x20]).unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_handler_is_called_while_a_client_does_not_read_its_responses() {
    let called = Arc::new(AtomicUsize::new(0));
    let count = called.clone();
    let router = Router::new().get("/f", move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async {
            sleep(Duration::from_millis(1)).await;
            Ok::<_, Rejection>(Response::content(vec![0; 60_000]))
        }
    });
    let config = ServerConfig { budget: Budget::new(16 << 20), ..ServerConfig::default() };
    let server = start(router, config);
    let mut streams: Vec<TcpStream> = (0..4).map(|_| greedy(server.address)).collect();
    for stream in &mut streams {
        stream.write_all(&[0x20, 0x01, 0xb1, b'f'].repeat(1_000)).unwrap();
    }
    sleep(Duration::from_millis(500)).await;
    // Of 4,000. The system's buffers take a few megabytes for each.
    let before = called.load(Ordering::Relaxed);
    assert!((4..1_000).contains(&before), "{before} handlers were called");
    sleep(Duration::from_millis(300)).await;
    assert_eq!(called.load(Ordering::Relaxed), before, "nothing goes on");
    // A client that reads is served beside them.
    assert_eq!(Client::new().get(&server.uri("/f")).await.unwrap().payload.len(), 60_000);
    std::thread::spawn(move || io::copy(&mut streams[0], &mut io::sink()));
    until(|| called.load(Ordering::Relaxed) >= before + 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_connection_silent_for_longest_is_replaced() {
    let server = serve(ServerConfig { max_connections: 2, ..ServerConfig::default() });
    let silent = TcpStream::connect(server.address).unwrap();
    until(|| server.handle.stats().tcp.connections == 1).await;
    let client = Client::new();
    assert_eq!(client.get(&server.uri("/hello")).await.unwrap().text(), "Hello!");
    assert_eq!(Client::new().get(&server.uri("/hello")).await.unwrap().text(), "Hello!");
    // The task of the silent connection counts, which may run after the response has arrived.
    until(|| server.handle.stats().tcp.evicted == 1).await;
    silent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    io::copy(&mut &silent, &mut io::sink()).expect("the end of the silent connection");
    assert_eq!(client.get(&server.uri("/hello")).await.unwrap().text(), "Hello!");
    assert_eq!(server.handle.stats().tcp.connections, 3, "the other one has stayed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn observers_above_the_memory_budget_are_answered_and_counted_as_refused() {
    let resource = Resource::new();
    let router =
        Router::new().observe("/o", &resource, |_| async { Ok::<_, Rejection>(Response::content("now")) });
    // An eighth of an eighth is for the observers of one connection: 16 KiB.
    let server = start(router, ServerConfig { budget: Budget::new(1 << 20), ..ServerConfig::default() });
    let client = Client::new();
    let mut observations = Vec::new();
    let mut refused = 0;
    for _ in 0..20 {
        match client.observe(&server.uri("/o")).await {
            Ok(observation) if observation.first().options.uint(6).is_some() => {
                observations.push(observation);
            }
            _ => refused += 1,
        }
    }
    assert!(observations.len() >= 10 && refused >= 1, "{} and {refused}", observations.len());
    assert_eq!(server.handle.stats().tcp.observers_refused, refused);
    resource.changed();
    for observation in &mut observations {
        let next = timeout(Duration::from_secs(5), observation.next()).await.expect("in time");
        assert_eq!(next.unwrap().unwrap().text(), "now");
    }
}

#[tokio::test]
async fn an_observation_ends_with_4_06_when_its_content_format_changes() {
    let (resource, format) = (Resource::new(), Arc::new(AtomicUsize::new(0)));
    let read = format.clone();
    let router = Router::new().observe("/o", &resource, move |_| {
        let format = read.load(Ordering::Relaxed) as u16;
        async move { Ok::<_, Rejection>(Response::content("now").content_format(format)) }
    });
    let server = start(router, ServerConfig::default());
    let mut observation = Client::new().observe(&server.uri("/o")).await.unwrap();
    format.store(50, Ordering::Relaxed);
    resource.changed();
    let last = timeout(Duration::from_secs(5), observation.next()).await.expect("in time");
    assert_eq!(last.unwrap().unwrap().code, Code::NOT_ACCEPTABLE, "RFC 7641 §4.2");
    assert!(observation.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_before_the_csm_an_oversized_message_or_invalid_options_abort_the_connection() {
    let server = serve(ServerConfig::default());
    let get = [0x01, 0x01, 0x7f];
    let too_long = [0x00, 0xe1, 0xf0, 0, 0, 255, 255, 1];
    // GET /hello, and after it an option of length 15.
    let unreadable = [&[0x00, 0xe1, 0x70, 0x01, 0xb5][..], b"hello", &[0x0f]].concat();
    for (nth, bytes) in [&get[..], &too_long, &unreadable].into_iter().enumerate() {
        // A CSM with Max-Message-Size 65535 and Block-wise-Transfer, and an Abort.
        assert_eq!(answer_to(&server, bytes), [0x40, 0xe1, 0x22, 0xff, 0xff, 0x20, 0x00, 0xe5]);
        assert_eq!(server.handle.stats().tcp.aborted, nth as u64 + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_large_response_is_sent_in_blocks_to_a_client_that_did_not_announce_block_support() {
    let server = serve(ServerConfig::default());
    // An empty CSM, a GET of /large with the token 7, and a Release.
    let asked = [&[0x00, 0xe1, 0x61, 0x01, 0x07, 0xb5][..], b"large", &[0x00, 0xe4]].concat();
    let answer = answer_to(&server, &asked);
    assert!(answer.ends_with(&[b'x'; 1_024]) && !answer.ends_with(&[b'x'; 1_025]), "a block of 1024 bytes");
    assert!(answer.windows(2).any(|pair| pair == [0x45, 0x07]), "2.05 with the token: {answer:x?}");
    // Block2 0/1/1024, and Size2 2000.
    assert!(answer.windows(4).any(|four| four == [0x0e, 0x52, 0x07, 0xd0]), "{answer:x?}");
    assert_eq!(server.handle.stats().tcp.too_large, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_release_signal_is_answered_by_closing_the_connection() {
    let server = serve(ServerConfig::default());
    // CSM, GET /hello with the token 7f, Release.
    let bytes = [&[0x00, 0xe1, 0x61, 0x01, 0x7f, 0xb5][..], b"hello", &[0x00, 0xe4]].concat();
    let expected = [&[0x40, 0xe1, 0x22, 0xff, 0xff, 0x20, 0x71, 0x45, 0x7f, 0xff][..], b"Hello!"].concat();
    assert_eq!(answer_to(&server, &bytes), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn libcoap_clients_get_responses_from_our_server_over_tcp() {
    let server = serve(ServerConfig::default());
    let uri = server.uri("/hello");
    let ask = move || Command::new("coap-client-openssl").args(["-B", "5"]).arg(uri).output();
    let Ok(output) = tokio::task::spawn_blocking(ask).await.unwrap() else {
        eprintln!("skipped: coap-client-openssl is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "Hello!", "{output:?}");
}

#[tokio::test]
async fn our_client_gets_responses_from_libcoap_servers_over_tcp() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new("coap-server-openssl");
    command.args(["-A", "127.0.0.1", "-p", &free.port().to_string()]);
    let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        eprintln!("skipped: coap-server-openssl is not installed");
        return;
    };
    for _ in 0..100 {
        if std::net::TcpStream::connect(free).is_ok() {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    let client = Client::new();
    let uri = format!("coap+tcp://{free}/");
    libcoap_answers(child, &client, &uri).await;
}
