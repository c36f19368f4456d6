//! Files that several clients write at the same time, and temporary files of killed servers.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::common::{Scratch, Serving, coapace};
use coap_numbers::option;
use coapace_net::{Client, Code, Dtls, Response};
use nix::fcntl::{Flock, FlockArg};

const CLIENTS: usize = 8;

/// The number of successful updates of a file by each client.
const UPDATES: usize = 10;

/// Starts a server of a writable directory over all transports that need no certificates. Returns it with its URIs.
fn serving(scratch: &Scratch) -> (Serving, Vec<String>) {
    let directory = scratch.path().to_str().expect("UTF-8");
    let server = Serving::new(&[
        "--directory",
        directory,
        "--writable",
        "--max-writes",
        "100000/100000",
        "--threads",
        "2",
        "-u",
        "lamp",
        "-k",
        "secret",
        "--tcp",
        "127.0.0.1:0",
        "--ws",
        "127.0.0.1:0",
    ]);
    let uris = [vec![server.uri.clone()], server.others.clone()].concat();
    assert_eq!(uris.len(), 4);
    (server, uris)
}

/// Runs `work` in several clients at the same time, over all transports. Returns the result of each.
fn at_once<F>(uris: &[String], work: impl Fn(Client, String) -> F) -> Vec<usize>
where
    F: Future<Output = usize> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|nth| {
            let client = Client::builder().dtls(Dtls::client("lamp", "secret")).build();
            let _inside = runtime.enter();
            tokio::spawn(work(client, uris[nth % uris.len()].clone()))
        })
        .collect();
    clients.into_iter().map(|client| runtime.block_on(client).expect("no client panics")).collect()
}

fn etag(response: &Response) -> Vec<u8> {
    response.options.value(option::ETAG).expect("an ETag").to_vec()
}

#[test]
fn no_conditional_update_of_a_file_is_lost_on_any_transport() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("count"), "1000000").expect("a file");
    let (_server, uris) = serving(&scratch);
    let tries = at_once(&uris, |client, uri| async move {
        let uri = format!("{uri}/count");
        let (mut tries, mut done) = (0, 0);
        // On a slow disk all clients read the same version, and one of them succeeds at a time. So each goes on until it has
        // made its updates.
        while done < UPDATES {
            let read = client.get(&uri).await.expect("an answer");
            let next = read.text().parse::<u64>().expect("a number") + 1;
            let put = client.put(&uri).option(option::IF_MATCH, &etag(&read)).payload(next.to_string());
            let put = put.await.expect("an answer");
            tries += 1;
            done += usize::from(put.code == Code::CHANGED);
            assert!(matches!(put.code, Code::CHANGED | Code::PRECONDITION_FAILED), "{put:?}");
        }
        tries
    });
    assert!(tries.iter().sum::<usize>() > CLIENTS * UPDATES, "some updates were refused: {tries:?}");
    let count = fs::read_to_string(scratch.path().join("count")).expect("a file");
    assert_eq!(count, (1_000_000 + CLIENTS * UPDATES).to_string());
}

#[test]
fn of_concurrent_creations_of_a_file_one_succeeds_on_any_transport() {
    let scratch = Scratch::new();
    let (_server, uris) = serving(&scratch);
    let created = at_once(&uris, |client, uri| async move {
        let mut created = 0;
        for name in 0..40 {
            let put = client.put(&format!("{uri}/{name}")).option(option::IF_NONE_MATCH, b"").payload("mine");
            created += usize::from(put.await.expect("an answer").code == Code::CREATED);
        }
        created
    });
    assert_eq!(created.iter().sum::<usize>(), 40);
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 40, "nothing else is there");
}

#[test]
fn temporary_files_of_killed_servers_are_removed_at_the_next_start() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("a/.b")).expect("folders");
    let path = |name: &str| scratch.path().join(name);
    let left = [".coapace-0123456789abcdef", "a/.coapace-00000000000000ff", "a/.b/.coapace-0123456789abcdef"];
    let kept = [
        ".coapace-1",
        ".coapace-0123456789abcdefg",
        "coapace-0123456789abcdef",
        "a/.coapace-1111111111111111",
    ];
    left.iter().chain(&kept).for_each(|name| fs::write(path(name), "half").expect("a file"));
    // The lock acts for another server that is writing the file.
    let written = fs::File::open(path(kept[3])).expect("a file");
    let _locked = Flock::lock(written, FlockArg::LockExclusiveNonblock).expect("nobody else has it");
    let directory = scratch.path().to_str().expect("UTF-8");
    drop(Serving::new(&["--directory", directory]));
    assert!(left.iter().all(|name| path(name).exists()), "who may not write removes nothing");
    drop(Serving::new(&["--directory", directory, "--writable"]));
    assert!(!left.iter().any(|name| path(name).exists()));
    assert!(kept.iter().all(|name| path(name).exists()));
}

#[test]
fn a_large_file_is_downloaded_complete_over_every_transport() {
    let scratch = Scratch::new();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    fs::write(scratch.path().join("large"), &bytes).expect("a file");
    let (_server, uris) = serving(&scratch);
    let read = at_once(&uris, |client, uri| async move {
        let response = client.get(&format!("{uri}/large")).await.expect("an answer");
        assert_eq!(etag(&response).len(), 8);
        response.payload.iter().map(|&byte| usize::from(byte)).sum()
    });
    let expected: usize = bytes.iter().map(|&byte| usize::from(byte)).sum();
    assert_eq!(read, [expected; CLIENTS]);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o7777
}

#[test]
fn a_replaced_file_keeps_its_mode_and_a_read_only_file_is_not_replaced() {
    let scratch = Scratch::new();
    let (secret, fixed) = (scratch.path().join("secret"), scratch.path().join("fixed"));
    for (path, mode) in [(&secret, 0o600), (&fixed, 0o444)] {
        fs::write(path, "before").expect("a file");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its owner may");
    }
    let server = Serving::new(&["--directory", scratch.path().to_str().expect("UTF-8"), "--writable"]);
    coapace(&["put", &server.at("/secret"), "-e", "after"]).success();
    assert_eq!((mode(&secret), fs::read_to_string(&secret).expect("a file").as_str()), (0o600, "after"));
    for method in ["put", "delete"] {
        let outcome = coapace(&[method, &server.at("/fixed"), "-e", "after"]);
        assert_eq!(outcome.failure(3), "4.03 Forbidden: the file is read-only");
    }
    assert_eq!((mode(&fixed), fs::read_to_string(&fixed).expect("a file").as_str()), (0o444, "before"));
}

#[test]
fn stored_resources_obey_if_match_and_other_resources_refuse_it() {
    let server = Serving::new(&["--demo"]);
    let (uri, echo) = (server.at("/store/a"), server.at("/echo"));
    let put = |arguments: &[&str]| coapace(&[&["put", &uri, "-e", "x"], arguments].concat());
    assert_eq!(put(&["-O", "1"]).failure(3), "4.12 Precondition Failed");
    put(&["-O", "5"]).success();
    assert_eq!(put(&["-O", "5"]).failure(3), "4.12 Precondition Failed");
    assert_eq!(put(&["-O", "1,0x01"]).failure(3), "4.12 Precondition Failed");
    assert_eq!(coapace(&["delete", &uri, "-O", "1,0x01"]).failure(3), "4.12 Precondition Failed");
    put(&["-O", "1"]).success();
    let conditional = coapace(&["post", &echo, "-e", "x", "-O", "5"]);
    assert_eq!(conditional.failure(3), "4.02 Bad Option: option 5 is not understood");
}
