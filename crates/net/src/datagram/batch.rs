//! Many datagrams with each system call: recvmmsg(2) and sendmmsg(2).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Ipv6Addr;
use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg, sendmmsg};

use super::family::Family;
use super::io::{DatagramIo, MAX_DATAGRAM, OutgoingDatagrams, Reception, send_all, send_run};
use super::socket::Socket;
use crate::Direction;
use crate::address::{LocalAddress, Remote};

/// The maximum number of datagrams in one system call.
const BATCH: usize = 32;

/// The headers and buffers of a socket's batches. They stay on one thread, because the headers hold pointers.
#[derive(Debug)]
pub(crate) struct BatchBuffers<S> {
    received: MultiHeaders<S>,
    /// The headers of datagrams: `sent` if the system chooses the source address, `sent_from` if the address is given.
    sent: MultiHeaders<S>,
    sent_from: MultiHeaders<S>,
    buffers: Box<[u8]>,
    addresses: Vec<Option<S>>,
    /// The local address at which the last datagram arrived, and the number of this address.
    last: (LocalAddress, u16),
}

impl<S: Family> BatchBuffers<S> {
    pub(crate) fn of(socket: &Socket) -> Self {
        Self {
            // Only a socket that reports local addresses needs memory for control messages.
            received: MultiHeaders::preallocate(BATCH, socket.tells_local.then(S::space)),
            sent: MultiHeaders::preallocate(BATCH, None),
            sent_from: MultiHeaders::preallocate(BATCH, Some(S::space())),
            buffers: vec![0; BATCH * MAX_DATAGRAM].into(),
            addresses: Vec::with_capacity(BATCH),
            last: (LocalAddress::ANY, 0),
        }
    }

    /// Sends the datagrams at the front of `outgoing` whose source is the address `local` with this `number`: they
    /// share a control message. Returns how many were sent.
    fn send_alike(
        &mut self,
        socket: &Socket,
        outgoing: &OutgoingDatagrams,
        number: u16,
        local: LocalAddress,
    ) -> io::Result<usize> {
        self.addresses.clear();
        let mut slices: [[IoSlice<'_>; 1]; BATCH] = [[IoSlice::new(&[])]; BATCH];
        for (nth, slice) in slices.iter_mut().enumerate() {
            let Some((to, bytes)) = outgoing.get(nth).filter(|(to, _)| to.local == number) else { break };
            *slice = [IoSlice::new(bytes)];
            self.addresses.push(Some(S::of(to, local)));
        }
        let slices = slices[..self.addresses.len()].iter();
        let (fd, addresses, flags) = (socket.as_raw_fd(), &self.addresses, MsgFlags::MSG_DONTWAIT);
        let sent = if local.ip.is_unspecified() {
            sendmmsg(fd, &mut self.sent, slices, addresses, [], flags)?.count()
        } else {
            S::with_source(local, |control| {
                sendmmsg(fd, &mut self.sent_from, slices, addresses, control, flags).map(Iterator::count)
            })?
        };
        Ok(sent)
    }
}

impl<S: Family> DatagramIo for BatchBuffers<S> {
    const READS: u32 = 1;

    fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(Remote, bool, &[u8]),
    ) -> io::Result<Reception> {
        let mut buffers = self.buffers.chunks_exact_mut(MAX_DATAGRAM);
        let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
            std::array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        let fd = socket.as_raw_fd();
        let messages = recvmmsg(fd, &mut self.received, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
        let mut received = Reception::default();
        let mut count = 0;
        for message in messages {
            count += 1;
            // A datagram without a sender cannot be answered.
            let Some(address) = message.address else { continue };
            let (ip, port, scope) = address.parts();
            let arrival = if socket.tells_local {
                message.cmsgs().ok().and_then(|mut controls| controls.find_map(S::arrival))
            } else {
                None
            };
            let (ip_here, to_group) = arrival.unwrap_or((Ipv6Addr::UNSPECIFIED, false));
            // Broadcasts arrive at every socket of the port. Only a member of a group wants such datagrams.
            if to_group && !socket.is_member {
                continue;
            }
            let local = LocalAddress { ip: ip_here, scope };
            // Most datagrams come to one address, so its number is looked up once.
            if self.last.0 != local {
                self.last = (local, socket.locals.number(local));
            }
            let from = Remote::new(ip, port, self.last.1);
            let bytes = message.iovs().next().unwrap_or_default();
            if message.flags.contains(MsgFlags::MSG_TRUNC) {
                received.note_truncated(from, to_group, bytes);
            } else if socket.passes(Direction::Received, from, bytes) {
                each(from, to_group, bytes);
            }
        }
        // If there were several, others may have arrived since. Receiving again costs less than waiting for the runtime.
        received.more = count > 1;
        Ok(received)
    }

    fn send(&mut self, socket: &Socket, outgoing: &mut OutgoingDatagrams) {
        if socket.interceptor.is_some() {
            return send_all(socket, outgoing);
        }
        while let Some((first, _)) = outgoing.get(0) {
            // One system call for many datagrams of equal length is cheaper than a batch.
            if send_run(socket, outgoing) {
                continue;
            }
            let number = first.local;
            let local = if number == self.last.1 { self.last.0 } else { socket.locals.get(number) };
            match self.send_alike(socket, outgoing, number, local) {
                Ok(count) => outgoing.advance(count),
                // The rest waits until the driver sees that the socket accepts datagrams again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => outgoing.fail(error),
            }
        }
    }
}
