//! The lower bound of costs: a responder and a client without state that make only the necessary checks.

use std::io::{self, BufRead, Write};
use std::net::UdpSocket;
use std::time::Duration;

use crate::Result;
use crate::arguments::Arguments;
use crate::message::{Answer, MAX_DATAGRAM};

/// Answers until the process is ended, with one `recvfrom` and one `sendto` a request.
pub fn respond(arguments: &Arguments) -> Result<()> {
    let exchange = arguments.exchange()?;
    let socket = UdpSocket::bind(arguments.server()?)?;
    let (mut request, mut response) = ([0; MAX_DATAGRAM], [0; MAX_DATAGRAM]);
    loop {
        let (length, source) = socket.recv_from(&mut request)?;
        if let Some(response) = exchange.respond(&request[..length], &mut response) {
            // An error because a source is gone does not end the responder.
            let _ = socket.send_to(response, source);
        }
    }
}

/// Reads numbers N from standard input. For each, makes N requests one after the other and prints the number of answers.
pub fn get(arguments: &Arguments) -> Result<()> {
    let exchange = arguments.exchange()?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(arguments.server()?)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut buffer = [0; MAX_DATAGRAM];
    let mut asked = 0_u32;
    for line in io::stdin().lock().lines() {
        let mut answered = 0;
        for _ in 0..line?.trim().parse::<u32>()? {
            asked = asked.wrapping_add(1);
            let request = exchange.request(asked as u16, asked);
            socket.send(&request)?;
            if let Ok(length) = socket.recv(&mut buffer) {
                answered += u32::from(exchange.check(&request, &buffer[..length]) == Answer::Right);
            }
        }
        println!("{answered}");
        io::stdout().flush()?;
    }
    Ok(())
}
