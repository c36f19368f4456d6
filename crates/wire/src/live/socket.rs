//! The sockets of hosts, on the loopback interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use super::LiveError;

/// The size of a socket's receive buffer in bytes. The system may grant less.
const RECEIVE_BYTES: usize = 1 << 20;

/// Opens a socket on the loopback interface.
pub(super) fn bind() -> Result<UdpSocket, LiveError> {
    let open = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BYTES)?;
        Ok(socket)
    };
    open().map_err(LiveError::io("open a socket"))
}

/// Returns the length and the sender of a datagram that has arrived at a socket; `None` if there is none.
pub(super) fn receive_from(
    socket: &UdpSocket,
    datagram: &mut [u8],
) -> Result<Option<(usize, SocketAddr)>, LiveError> {
    loop {
        match socket.recv_from(datagram) {
            Ok(received) => return Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            // An earlier datagram found nobody at its port.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(LiveError::io("receive a datagram")(error)),
        }
    }
}
