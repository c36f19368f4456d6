//! Receiving datagrams with the time at which the system received each.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};

/// The maximum number of datagrams of a socket that are received in a row, before packets that are due are sent.
const ROW: usize = 32;

/// The longest datagram of UDP.
const LONGEST: usize = 65_535;

/// The receive buffer that sockets ask for, in bytes. The system gives less if `net.core.rmem_max` is less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The buffer into which datagrams are received, one with each system call. nix's recvmmsg(2) would receive several,
/// but it keeps lengths from one call to the next. It would therefore lose the control message that counts lost
/// datagrams, because only some datagrams have this message.
#[derive(Debug)]
pub(super) struct Datagrams {
    bytes: Box<[u8]>,
    controls: Vec<u8>,
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedDatagram<'a> {
    /// The sender.
    pub(super) from: Option<SocketAddr>,
    /// The time since the system received the datagram.
    pub(super) age: Duration,
    /// The number of datagrams that the socket has lost so far because its buffer was full; `None` if it has lost none.
    pub(super) lost: Option<u32>,
    pub(super) bytes: &'a [u8],
}

/// Prepares a socket for [`Datagrams::receive`].
pub(super) fn prepare(socket: &UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)?;
    // SO_RXQ_OVFL reports how many datagrams a full buffer has cost so far (socket(7)).
    setsockopt(socket, sockopt::RxqOvfl, &1)?;
    // A smaller buffer is not an error.
    setsockopt(socket, sockopt::RcvBuf, &RECEIVE_BUFFER)?;
    Ok(())
}

impl Datagrams {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; LONGEST].into(), controls: nix::cmsg_space!(libc::timespec, u32) }
    }

    /// Receives up to `ROW` of the datagrams that have arrived, and passes each to `each`, the oldest first.
    ///
    /// # Errors
    /// The errors of the socket, including errors that ICMP reported. An empty socket is not an error.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut each: impl FnMut(ReceivedDatagram<'_>),
    ) -> io::Result<()> {
        for _ in 0..ROW {
            let mut slices = [IoSliceMut::new(&mut self.bytes)];
            let (fd, controls) = (socket.as_raw_fd(), Some(&mut self.controls[..]));
            let received = match recvmsg(fd, &mut slices, controls, MsgFlags::MSG_DONTWAIT) {
                Ok(received) => received,
                // After a signal the caller's loop comes back here at once, because the socket is still readable.
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let (mut age, mut lost) = (Duration::ZERO, None);
            for control in received.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::ScmTimestampns(at) => age = since(at.into()),
                    ControlMessageOwned::RxqOvfl(count) => lost = Some(count),
                    _ => {}
                }
            }
            let from = received.address.as_ref().and_then(address);
            // Without the system's stamp the age is zero: the datagram then counts as received now.
            each(ReceivedDatagram { from, age, lost, bytes: received.iovs().next().unwrap_or_default() });
        }
        Ok(())
    }
}

/// Returns how long ago a time of the system's clock was. It is zero for a time in the future, or a second or more ago:
/// the clock has been set since then.
fn since(at: Duration) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.checked_sub(at).filter(|age| *age < Duration::from_secs(1)).unwrap_or_default()
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|address| SocketAddrV4::from(*address).into());
    v4.or_else(|| storage.as_sockaddr_in6().map(|address| SocketAddrV6::from(*address).into()))
}
