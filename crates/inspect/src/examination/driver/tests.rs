use super::super::cases;
use super::*;

/// Returns the plan of an examination without a command.
fn plan(side: ExaminedSide, address: SocketAddr, all: &[Case]) -> ExaminationPlan {
    ExaminationPlan {
        side,
        address,
        cases: all.iter().map(|case| &*Box::leak(Box::new(*case))).collect(),
        target: ExaminationTarget::default(),
        command: None,
        at_once: 1,
        patience: Duration::from_secs(5),
    }
}

/// Plays a case with this instead of its socket.
#[cfg(unix)]
fn played(socket: std::os::fd::OwnedFd) -> Result<Transcript, String> {
    let address = "127.0.0.1:0".parse().unwrap();
    let plan = plan(ExaminedSide::Client, address, &cases(ExaminedSide::Client)[..1]);
    let recorder = Recorder::new(None);
    let mut stage = CaseStage::new(&plan, 0, plan.cases[0], 1, &recorder).unwrap();
    stage.sockets = vec![socket.into()];
    stage.play(&AtomicBool::new(false))
}

#[cfg(unix)]
#[test]
fn a_case_whose_socket_cannot_be_used_ends_with_the_error() {
    let problem = played(std::fs::File::open("/dev/null").unwrap().into()).unwrap_err();
    assert!(problem.starts_with("a socket failed"), "{problem}");
}

#[cfg(unix)]
#[test]
fn a_socket_that_returns_errors_without_end_ends_the_case() {
    // A datagram cannot be received at a socket that listens for connections.
    let problem = played(std::net::TcpListener::bind("127.0.0.1:0").unwrap().into()).unwrap_err();
    assert!(problem.starts_with("a socket failed"), "{problem}");
}

#[test]
fn a_case_that_panics_gives_its_lanes_to_the_next_case() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let greeter = thread::spawn(move || {
        let (_, peer) = server.recv_from(&mut [0; 64]).unwrap();
        server.send_to(b"x", peer).unwrap();
    });
    let (sender, done) = channel();
    thread::spawn(move || {
        let (first, second) = (&cases(ExaminedSide::Server)[0], &cases(ExaminedSide::Server)[1]);
        let fails = Case { begin: |_, _| panic!("a fault of the examiner"), ..*first };
        let works = Case { is_enough: |_, _| true, ..*second };
        let tell = |news: News<'_>| {
            if let News::Done(examined) = news {
                sender.send(examined.case.name).unwrap();
            }
        };
        let plan = plan(ExaminedSide::Server, address, &[fails, works]);
        examine(&plan, &Recorder::new(None), &AtomicBool::new(false), &tell)
    });
    greeter.join().unwrap();
    // The second case waits for the only lane.
    assert_eq!(done.recv_timeout(Duration::from_secs(20)), Ok(cases(ExaminedSide::Server)[1].name));
}
