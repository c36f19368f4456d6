//! A server and a client in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Running, echo, serve, serve_at, serve_with, until};
use coap_numbers::option;
use coapace_net::{Client, Code, Config, Error, Profile, Rejection, Request, Response, Router, ServerConfig};

async fn temperature(_: Request) -> Result<Response, Rejection> {
    Ok(Response::content("21.5").content_format(0))
}

async fn slow(request: Request) -> Result<Response, Rejection> {
    let ms = request.argument("ms").unwrap_or("500").parse()?;
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(Response::content("late"))
}

async fn panics(_: Request) -> Result<Response, Rejection> {
    panic!("as it is meant to");
}

async fn panics_later(_: Request) -> Result<Response, Rejection> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    panic!("as it is meant to");
}

async fn by_id(request: Request) -> Result<Response, Rejection> {
    let id: u32 = request.parameter("id").ok_or(Rejection::not_found())?.parse()?;
    Ok(Response::content(format!("{id} by {}", request.path())))
}

fn router() -> Router {
    Router::new()
        .get("/temperature", temperature)
        .post("/echo", echo)
        .put("/echo", echo)
        .delete("/echo", echo)
        .fetch("/echo", echo)
        .patch("/echo", echo)
        .ipatch("/echo", echo)
        .get("/slow", slow)
        .get("/panic", panics)
        .get("/panic/later", panics_later)
        .get("/things/{id}", by_id)
        .get("/things/all", temperature)
        .get("/things/{id}/parts/{part}", |request: Request| async move {
            let part = request.parameter("part").unwrap_or("?").to_owned();
            Ok::<_, Rejection>(Response::content(part))
        })
}

fn started() -> Running {
    serve(router())
}

async fn text_of(client: &Client, uri: &str) -> String {
    client.get(uri).await.unwrap().text().into_owned()
}

#[tokio::test]
async fn a_get_gets_a_piggybacked_response() {
    let server = started();
    let client = Client::new();
    let response = client.get(&server.uri("/temperature")).await.unwrap();
    assert_eq!((response.code, response.text().as_ref()), (Code::CONTENT, "21.5"));
    assert_eq!((response.format(), response.transmissions), (Some(0), 1));
    assert!(response.elapsed > Duration::ZERO && response.elapsed < Duration::from_secs(1));
    let stats = server.handle.stats();
    assert_eq!((stats.endpoint.received, stats.endpoint.started), (1, 0), "no separate response");
}

#[tokio::test]
async fn every_method_reaches_its_handler_with_its_payload() {
    let server = started();
    let client = Client::new();
    let uri = &server.uri("/echo");
    let calls = [client.post(uri), client.put(uri), client.delete(uri), client.fetch(uri)];
    for call in calls.into_iter().chain([client.patch(uri), client.ipatch(uri)]) {
        assert_eq!(call.payload("abc").await.unwrap().text(), "abc");
    }
}

#[tokio::test]
async fn handlers_get_path_parameters_and_literal_segments_take_precedence() {
    let server = started();
    let client = Client::new();
    assert_eq!(text_of(&client, &server.uri("/things/7")).await, "7 by /things/7");
    assert_eq!(text_of(&client, &server.uri("/things/all")).await, "21.5");
    assert_eq!(text_of(&client, &server.uri("/things/all/parts/a%20b")).await, "a b");
    let response = client.get(&server.uri("/things/seven")).await.unwrap();
    assert_eq!(response.code, Code::BAD_REQUEST, "a parameter that is not a number is a bad request");
}

#[tokio::test]
async fn a_missing_resource_is_4_04_and_a_method_without_a_handler_4_05() {
    let server = started();
    let client = Client::new();
    let code = async |call: coapace_net::Call| call.await.unwrap().code;
    assert_eq!(code(client.get(&server.uri("/nothing"))).await, Code::NOT_FOUND);
    assert_eq!(code(client.get(&server.uri("/things"))).await, Code::NOT_FOUND);
    assert_eq!(code(client.get(&server.uri("/"))).await, Code::NOT_FOUND);
    assert_eq!(code(client.put(&server.uri("/temperature"))).await, Code::METHOD_NOT_ALLOWED);
    assert_eq!(code(client.request(Code(31), &server.uri("/nothing"))).await, Code::METHOD_NOT_ALLOWED);
    assert_eq!(code(client.fetch(&server.uri("/nothing"))).await, Code::NOT_FOUND);
    assert_eq!(code(client.get(&server.uri("/temperature")).option(65_001, b"")).await, Code::BAD_OPTION);
    assert_eq!(code(client.get(&server.uri("/temperature")).option(65_000, b"")).await, Code::CONTENT);
    assert_eq!(
        code(client.get(&server.uri("/")).option(35, b"coap://h/")).await,
        Code::PROXYING_NOT_SUPPORTED
    );
}

#[tokio::test]
async fn if_match_is_passed_to_handlers_that_support_it_and_answered_4_02_otherwise() {
    async fn update(request: Request) -> Result<Response, Rejection> {
        request.precondition((request.path() != "/nothing").then_some(b"v1"))?;
        Ok(Response::changed())
    }
    let router = Router::new().put("/there", update).conditional("/there").put("/nothing", update);
    let router = router.conditional("/nothing").put("/careless", echo);
    let server = serve(router.clone());
    let with_fallback = serve(router.clone().fallback(echo));
    let conditional = serve(router.fallback(update).conditional_fallback());
    let client = Client::new();
    let [one, any, none] =
        [(option::IF_MATCH, &b"v1"[..]), (option::IF_MATCH, b""), (option::IF_NONE_MATCH, b"")];
    let other = (option::IF_MATCH, &b"v2"[..]);
    for (server, path, options, code) in [
        (&server, "/there", &[one][..], 0x44),
        (&server, "/there", &[other, one], 0x44),
        (&server, "/there", &[any], 0x44),
        (&server, "/there", &[other], 0x8c),
        (&server, "/there", &[none], 0x8c),
        (&server, "/there", &[one, none], 0x8c),
        (&server, "/nothing", &[none], 0x44),
        (&server, "/nothing", &[any], 0x8c),
        (&server, "/careless", &[], 0x45),
        (&server, "/careless", &[one], 0x82),
        (&server, "/careless", &[none], 0x82),
        (&with_fallback, "/elsewhere", &[none], 0x82),
        (&conditional, "/elsewhere", &[other], 0x8c),
        (&conditional, "/careless", &[other], 0x82),
    ] {
        let call = client.put(&server.uri(path));
        let call = options.iter().fold(call, |call, &(number, value)| call.option(number, value));
        assert_eq!(call.await.unwrap().code, Code(code), "{path} {options:?}");
    }
}

#[tokio::test]
async fn the_fallback_handler_gets_requests_that_match_no_path() {
    let server = serve(router().fallback(|request: Request| async move {
        Ok::<_, Rejection>(Response::content(format!("no {}", request.path())))
    }));
    assert_eq!(text_of(&Client::new(), &server.uri("/x/y")).await, "no /x/y");
}

#[tokio::test]
async fn the_request_of_a_slow_handler_is_acknowledged_in_time_and_answered_separately() {
    let server = started();
    let client = Client::new();
    // Longer than ACK_TIMEOUT: without the acknowledgement there would be a retransmission.
    let response = client.get(&server.uri("/slow?ms=3500")).await.unwrap();
    assert_eq!((response.text().as_ref(), response.transmissions), ("late", 1));
    // The client has its response before the server has the acknowledgement.
    until(|| server.handle.stats().endpoint.completed == 1).await;
    let stats = server.handle.stats();
    assert_eq!((stats.endpoint.started, stats.net.deferred), (1, 1));
    assert_eq!(stats.endpoint.duplicates, 0);
}

#[tokio::test]
async fn the_response_of_a_fast_handler_is_piggybacked() {
    let server = started();
    let response = Client::new().get(&server.uri("/slow?ms=20")).await.unwrap();
    assert_eq!(response.text(), "late");
    assert_eq!(server.handle.stats().endpoint.started, 0);
}

#[tokio::test]
async fn a_panic_of_a_handler_is_answered_5_00_and_the_server_keeps_running() {
    let server = started();
    let client = Client::new();
    for path in ["/panic", "/panic/later"] {
        assert_eq!(client.get(&server.uri(path)).await.unwrap().code, Code::INTERNAL_SERVER_ERROR);
    }
    assert_eq!(text_of(&client, &server.uri("/temperature")).await, "21.5");
    assert_eq!(server.handle.stats().net.panics, 2);
}

#[tokio::test]
async fn a_non_confirmable_request_is_answered_without_confirmation() {
    let server = started();
    let client = Client::new();
    let response = client.get(&server.uri("/temperature")).non_confirmable().await.unwrap();
    assert_eq!(response.text(), "21.5");
    let slow = client.get(&server.uri("/slow?ms=400")).non_confirmable().await.unwrap();
    assert_eq!(slow.text(), "late");
    assert_eq!(server.handle.stats().endpoint.started, 0, "nothing of it is confirmable");
}

#[tokio::test]
async fn a_ping_gets_a_pong() {
    let server = started();
    let client = Client::new();
    let pong = client.ping(&server.uri("")).await.unwrap();
    assert_eq!((pong.code, pong.transmissions), (Code::EMPTY, 1));
}

#[tokio::test]
async fn requests_above_the_limit_of_waiting_handlers_are_refused_with_max_age() {
    let config = ServerConfig { max_pending: 1, cores: 1, ..ServerConfig::default() };
    let server = serve_with(router(), config);
    let (first, second) = (Client::new(), Client::new());
    let uri = server.uri("/slow?ms=300");
    let waiting = tokio::spawn({
        let uri = uri.clone();
        async move { first.get(&uri).await.unwrap().code }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = second.get(&uri).await.unwrap();
    assert_eq!((refused.code, refused.options.uint(14)), (Code::SERVICE_UNAVAILABLE, Some(5)));
    assert_eq!(waiting.await.unwrap(), Code::CONTENT);
    assert_eq!(text_of(&second, &server.uri("/slow?ms=1")).await, "late", "there is room again");
    assert_eq!(server.handle.stats().net.refused, 1);
}

#[tokio::test]
async fn a_handler_is_not_called_without_a_free_slot() {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let push = move |_: Request| {
        counted.fetch_add(1, Ordering::Relaxed);
        async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, Rejection>(Response::changed())
        }
    };
    let config = ServerConfig { max_pending: 1, cores: 1, ..ServerConfig::default() };
    let server = serve_with(router().post("/push", push), config);
    let (first, second) = (Client::new(), Client::new());
    let uri = server.uri("/push");
    let waiting = tokio::spawn(first.post(&uri).into_future());
    until(|| count.load(Ordering::Relaxed) == 1).await;
    assert_eq!(second.post(&uri).await.unwrap().code, Code::SERVICE_UNAVAILABLE);
    assert_eq!(second.get(&uri).await.unwrap().code, Code::METHOD_NOT_ALLOWED, "no handler, no place");
    assert_eq!(waiting.await.unwrap().unwrap().code, Code::CHANGED);
    assert_eq!(count.load(Ordering::Relaxed), 1, "a refused request has not happened");
    assert_eq!(second.post(&uri).await.unwrap().code, Code::CHANGED, "there is room again");
}

#[tokio::test]
async fn many_tasks_share_a_client_without_exceeding_nstart() {
    let server = started();
    let client = Client::new();
    let calls: Vec<_> = (0..200)
        .map(|n| {
            let (client, uri) = (client.clone(), server.uri("/echo"));
            tokio::spawn(async move { (n, client.post(&uri).payload(format!("{n}")).await.unwrap()) })
        })
        .collect();
    for call in calls {
        let (n, response) = call.await.unwrap();
        assert_eq!(response.text(), n.to_string());
    }
    let [(_, there)] = client.destinations()[..] else { panic!("one destination") };
    assert_eq!((there.exchanges, there.failed, there.address), (200, 0, server.address));
    assert_eq!(client.stats().endpoint.completed, 200);
}

#[tokio::test]
async fn a_mechanism_chosen_for_a_request_has_its_own_rto_estimate() {
    let server = started();
    let client = Client::builder().mechanism("cocoa".parse().unwrap()).build();
    let uri = server.uri("/temperature");
    client.get(&uri).await.unwrap();
    client.get(&uri).mechanism("fasor".parse().unwrap()).await.unwrap();
    client.get(&uri).await.unwrap();
    let mut exchanges: Vec<_> = client.destinations().iter().map(|(_, there)| there.exchanges).collect();
    exchanges.sort_unstable();
    assert_eq!(exchanges, [1, 2]);
    for (profile, there) in client.destinations() {
        assert!(there.srtt.is_some() && there.rto < Duration::from_secs(2), "{profile:?} {there:?}");
    }
}

#[tokio::test]
async fn a_destination_can_have_its_own_profile() {
    let (near, far) = (started(), started());
    let cocoa = Profile::from("cocoa".parse::<coapace_net::Mechanism>().unwrap());
    let client = Client::builder().destination("127.0.0.1", far.address.port(), cocoa).build();
    client.get(&near.uri("/temperature")).await.unwrap();
    client.get(&far.uri("/temperature")).await.unwrap();
    for (profile, there) in client.destinations() {
        let expected = if there.address == far.address { cocoa } else { Profile::default() };
        assert_eq!((profile, there.exchanges), (expected, 1));
    }
    assert_eq!(client.destinations().len(), 2);
}

#[tokio::test]
async fn a_response_with_an_unknown_critical_option_and_a_reset_are_errors() {
    let strange = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = strange.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut request = [0; 100];
        let (_, from) = strange.recv_from(&mut request).unwrap();
        // 2.05 with option 9, which is critical and nobody's.
        let token = &request[4..10];
        let content = [&[0x66, 0x45, request[2], request[3]], token, &[0x90]].concat();
        strange.send_to(&content, from).unwrap();
        let (_, from) = strange.recv_from(&mut request).unwrap();
        let separate = [&[0x46, 0x45, 0xab, 0xcd], &request[4..10], &[0x90]].concat();
        strange.send_to(&separate, from).unwrap();
        let (len, _) = strange.recv_from(&mut request).unwrap();
        assert_eq!(request[..len], [0x70, 0, 0xab, 0xcd]);
        let (_, from) = strange.recv_from(&mut request).unwrap();
        strange.send_to(&[0x70, 0, request[2], request[3]], from).unwrap();
    });
    let client = Client::new();
    let uri = format!("coap://{address}/x");
    for _ in ["piggybacked", "separate"] {
        let error = client.get(&uri).await.unwrap_err();
        assert!(matches!(error, Error::BadOption(9)), "{error}");
    }
    let error = client.get(&uri).await.unwrap_err();
    assert!(matches!(error, Error::Reset), "{error}");
    tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_representation_in_another_format_than_accept_is_answered_4_06() {
    let server = serve(
        Router::new()
            .get("/temperature", temperature)
            .post("/temperature", temperature)
            .get("/late", async |request: Request| {
                tokio::time::sleep(Duration::from_millis(10)).await;
                temperature(request).await
            })
            .get("/unnamed", echo)
            .get("/missing", async |_: Request| Err::<Response, _>(Rejection::not_found())),
    );
    let client = Client::new();
    for (path, format, code) in [
        ("/temperature", 0, Code::CONTENT),
        ("/temperature", 60, Code::NOT_ACCEPTABLE),
        ("/late", 0, Code::CONTENT),
        ("/late", 60, Code::NOT_ACCEPTABLE),
        ("/unnamed", 60, Code::CONTENT),
        ("/missing", 60, Code::NOT_FOUND),
        ("/.well-known/core", 40, Code::CONTENT),
        ("/.well-known/core", 60, Code::NOT_ACCEPTABLE),
    ] {
        let response = client.get(&server.uri(path)).accept(format).await.unwrap();
        assert_eq!(response.code, code, "{path} as {format}");
    }
    let response = client.post(&server.uri("/temperature")).accept(60).await.unwrap();
    assert_eq!(response.code, Code::CONTENT, "it has had its effect");
}

#[tokio::test]
async fn a_client_answers_only_confirmable_requests_with_5_01() {
    let strange = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = strange.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut bytes = [0; 100];
        let (_, from) = strange.recv_from(&mut bytes).unwrap();
        let content = [&[0x66, 0x45, bytes[2], bytes[3]], &bytes[4..10]].concat();
        for request in [[0x50, 1, 0, 1], [0x40, 1, 0, 2]] {
            strange.send_to(&request, from).unwrap();
        }
        let (len, _) = strange.recv_from(&mut bytes).unwrap();
        strange.send_to(&content, from).unwrap();
        assert_eq!(bytes[..len], [0x60, 0xa1, 0, 2], "5.01 to the second");
    });
    Client::new().get(&format!("coap://{address}/x")).await.unwrap();
    tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
}

#[tokio::test]
async fn dropping_a_call_cancels_its_exchange() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = Client::new();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let call = client.get(&uri).timeout(Duration::from_millis(50));
    assert!(matches!(call.await, Err(Error::TimedOut)));
    // NSTART is 1: the next would wait if the first were still there.
    let mut buffer = [0; 100];
    silent.recv(&mut buffer).unwrap();
    let call = client.get(&uri).timeout(Duration::from_millis(50));
    assert!(matches!(call.await, Err(Error::TimedOut)));
    silent.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    silent.recv(&mut buffer).expect("the second request");
}

#[tokio::test]
async fn an_unknown_host_name_is_reported_as_not_found() {
    let error = Client::new().get("coap://nobody.invalid/x").await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let error = Client::new().get("coap://h h/x").await.unwrap_err();
    assert!(matches!(error, Error::Uri(_)), "{error}");
    let error = Client::new().get("coaps+ws://localhost/x").await.unwrap_err();
    #[cfg(feature = "tls")]
    assert_eq!(error.to_string(), "the client trusts no certificates");
    #[cfg(not(feature = "tls"))]
    assert!(matches!(error, Error::Scheme(_)), "{error}");
}

#[tokio::test]
async fn a_silent_address_is_given_up_after_the_last_retransmission() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = Config { max_retransmit: 1, ..Config::default() };
    let mechanism = "default:ack_timeout=100ms".parse().unwrap();
    let client = Client::builder().mechanism(mechanism).config(config).build();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let error = client.get(&uri).await.unwrap_err();
    assert!(matches!(error, Error::GivenUp { transmissions: 2 }), "{error}");
    let [(_, there)] = client.destinations()[..] else { panic!("one destination") };
    assert_eq!((there.exchanges, there.failed, there.retransmissions), (1, 1, 1));
}

#[tokio::test]
async fn a_shutdown_waits_for_running_handlers_and_refuses_new_requests() {
    let mut server = started();
    let client = Client::new();
    let uri = server.uri("/slow?ms=600");
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.get(&uri).await.unwrap().text().into_owned() }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.handle.shutdown();
    let other = Client::new().get(&server.uri("/temperature")).await.unwrap();
    assert_eq!(other.code, Code::SERVICE_UNAVAILABLE);
    assert_eq!(waiting.await.unwrap(), "late");
    tokio::time::timeout(Duration::from_secs(5), server.ended()).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_answer_comes_from_the_address_that_was_asked() {
    for bind in ["[::]:0", "0.0.0.0:0"] {
        let server = serve_at(bind, router(), ServerConfig::default());
        let client = Client::new();
        let hosts = ["127.0.0.5", "127.0.0.1", "[::1]"];
        for host in hosts.into_iter().filter(|host| bind.starts_with('[') || !host.starts_with('[')) {
            // A client takes only responses from the address it asked. 50 requests are more than a batch has places.
            let uri = format!("coap://{host}:{}/temperature", server.address.port());
            for _ in 0..50 {
                assert_eq!(text_of(&client, &uri).await, "21.5");
            }
            let uri = format!("coap://{host}:{}/slow?ms=300", server.address.port());
            assert_eq!(text_of(&client, &uri).await, "late", "a separate response");
        }
    }
}

#[tokio::test]
async fn several_threads_of_a_server_share_a_port() {
    let config = ServerConfig { cores: 3, ..ServerConfig::default() };
    let server = serve_with(router(), config);
    let calls: Vec<_> = (0..30)
        .map(|_| {
            let uri = server.uri("/temperature");
            tokio::spawn(async move { Client::new().get(&uri).await.unwrap().code })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Code::CONTENT);
    }
    assert_eq!(server.handle.stats().endpoint.received, 30);
}
