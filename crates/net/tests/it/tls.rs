//! `coaps+tcp`: good and bad certificates, and libcoap at the other end.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::certified::{Authority, Files, Issued};
use crate::common::{Running, libcoap_answers, run};
use crate::dtls_interop::installed;
use coapace_net::{
    BadCertificate, Certificates, Client, Error, Identity, Rejection, Request, Response, Router, Server,
    ServerConfig, TlsError,
};
use tokio::time::sleep;

fn own(issued: &Issued) -> Certificates {
    Certificates::new().identity(issued.certificate.as_bytes(), issued.key.as_bytes()).unwrap()
}

fn trusting(authority: &Authority) -> Certificates {
    Certificates::new().trust(authority.pem.as_bytes()).unwrap()
}

fn client(certificates: &Certificates) -> Client {
    Client::builder().certificates(certificates).unwrap().build()
}

async fn who(request: Request) -> Result<Response, Rejection> {
    Ok(Response::content(match request.peer_identity() {
        Some(Identity::Certificate(certificate)) => certificate.subject().to_owned(),
        _ => String::from("nobody"),
    }))
}

fn serve(certificates: &Certificates) -> Running {
    let bound = Server::bind_tls("127.0.0.1:0", ServerConfig::default(), certificates);
    run("coaps+tcp", bound, Router::new().get("/who", who))
}

#[tokio::test]
async fn a_certificate_is_accepted_only_for_its_name_and_from_a_trusted_issuer() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = serve(&own(&authority.issue(&["127.0.0.1"])));
    let response = client(&trusting(&authority)).get(&server.uri("/who")).await.unwrap();
    assert_eq!(response.text(), "nobody");

    let error = client(&trusting(&stranger)).get(&server.uri("/who")).await.unwrap_err();
    assert!(matches!(error, Error::Tls(TlsError::UnknownIssuer)), "{error:?}");
    let error = client(&Certificates::new()).get(&server.uri("/who")).await.unwrap_err();
    assert!(matches!(error, Error::Tls(TlsError::UnknownIssuer)), "{error:?}");
    let error = Client::new().get(&server.uri("/who")).await.unwrap_err();
    assert!(matches!(error, Error::Tls(TlsError::NoRoots)), "{error:?}");

    let by_name = format!("coaps+tcp://localhost:{}/who", server.address.port());
    let error = client(&trusting(&authority)).get(&by_name).await.unwrap_err();
    assert_eq!(error.to_string(), "certificate not valid for localhost");
}

#[tokio::test]
async fn a_server_with_trusted_issuers_knows_the_certificate_of_the_client() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let lamp = authority.issue(&["lamp-7"]);
    let certificates = own(&authority.issue(&["127.0.0.1"])).trust(authority.pem.as_bytes()).unwrap();
    let server = serve(&certificates);

    let known = own(&lamp).trust(authority.pem.as_bytes()).unwrap();
    assert_eq!(client(&known).get(&server.uri("/who")).await.unwrap().text(), "CN=lamp-7");
    let error = client(&trusting(&authority)).get(&server.uri("/who")).await.unwrap_err();
    assert_eq!(error.to_string(), "refused by the peer: it wants a certificate");
    let unknown = own(&stranger.issue(&["lamp-7"])).trust(authority.pem.as_bytes()).unwrap();
    let error = client(&unknown).get(&server.uri("/who")).await.unwrap_err();
    assert!(matches!(error, Error::Tls(TlsError::Refused(_))), "{error:?}");

    let server = serve(&certificates.allow_anonymous());
    assert_eq!(client(&known).get(&server.uri("/who")).await.unwrap().text(), "CN=lamp-7");
    assert_eq!(client(&trusting(&authority)).get(&server.uri("/who")).await.unwrap().text(), "nobody");
    assert!(client(&unknown).get(&server.uri("/who")).await.is_err());
}

#[test]
fn an_invalid_certificate_and_a_key_that_does_not_match_have_clear_errors() {
    let authority = Authority::new();
    let (a, b) = (authority.issue(&["a"]), authority.issue(&["b"]));
    let identity = |chain: &str, key: &str| Certificates::new().identity(chain.as_bytes(), key.as_bytes());
    assert_eq!(identity(&a.certificate, &b.key).unwrap_err(), BadCertificate::Mismatch);
    assert_eq!(identity(&a.key, &a.key).unwrap_err(), BadCertificate::None);
    assert!(matches!(identity(&a.certificate, "").unwrap_err(), BadCertificate::Pem(_)));
    assert_eq!(Certificates::new().trust(b"hello").unwrap_err(), BadCertificate::None);
    assert!(Server::bind_tls("127.0.0.1:0", ServerConfig::default(), &Certificates::new()).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn libcoap_clients_get_responses_and_are_identified_by_their_certificates() {
    if !installed("coap-client-openssl") {
        return;
    }
    let (authority, files) = (Authority::new(), Files::new("tls-clients"));
    let lamp = authority.issue(&["lamp-7"]);
    let server =
        serve(&own(&authority.issue(&["127.0.0.1", "localhost"])).trust(authority.pem.as_bytes()).unwrap());
    let (root, certificate, key) = (
        files.write("ca.pem", &authority.pem),
        files.write("lamp.pem", &lamp.certificate),
        files.write("lamp.key", &lamp.key),
    );
    let uri = format!("coaps+tcp://127.0.0.1:{}/who", server.address.port());
    let ask = move || {
        let arguments = ["-B", "5", "-C", &root, "-c", &certificate, "-j", &key, &uri].map(String::from);
        Command::new("coap-client-openssl").args(arguments).output()
    };
    let output = tokio::task::spawn_blocking(ask).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "CN=lamp-7", "{output:?}");
}

#[tokio::test]
async fn our_client_gets_responses_from_libcoap_servers_over_tls() {
    if !installed("coap-server-openssl") {
        return;
    }
    let (authority, files) = (Authority::new(), Files::new("tls-servers"));
    let own_files = authority.issue(&["127.0.0.1"]);
    let (root, certificate, key) = (
        files.write("ca.pem", &authority.pem),
        files.write("server.pem", &own_files.certificate),
        files.write("server.key", &own_files.key),
    );
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new("coap-server-openssl");
    command.args(["-A", "127.0.0.1", "-p", &free.port().to_string()]);
    command.args(["-n", "-C", &root, "-c", &certificate, "-j", &key]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_millis(500)).await;
    // The port of TLS is the one above.
    let uri = format!("coaps+tcp://127.0.0.1:{}/", free.port() + 1);
    let lamp = own(&authority.issue(&["lamp-7"])).trust(authority.pem.as_bytes()).unwrap();
    let client = client(&lamp);
    libcoap_answers(child, &client, &uri).await;
}
