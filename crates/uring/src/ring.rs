//! The ring: sockets in numbered slots, operations on them, and what came of those.

use std::collections::HashMap;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::io::Errno;
use socket2::SockAddr;

use crate::buffers::Buffers;

/// Bytes of a buffer. A small file comes in one piece.
const BUFFER_BYTES: u32 = 16 * 1024;

/// Buffers, fewest and most. One is taken for each answer, and given back when it has been looked at:
/// of more than a few hundred, most would lie idle.
const BUFFERS_MIN: usize = 16;
const BUFFERS_MAX: usize = 1024;

/// Operations that are queued before the kernel must take them, fewest and most.
const QUEUED_MIN: usize = 64;
const QUEUED_MAX: usize = 4096;

/// Sends up to this length are not reported when they succeed: an empty send buffer has room for them.
const UNREPORTED_BYTES_MAX: usize = 4096;

/// Copies of requests up to this length leave their memory for others. There are no more than sockets.
const SPARE_BYTES_MAX: usize = 16 * 1024;

/// Send all of it, however often the send buffer is full.
///
/// Source: recv(2), send(2); the same number on all architectures of Linux.
const MSG_WAITALL: i32 = 0x100;
/// No SIGPIPE.
const MSG_NOSIGNAL: i32 = 0x4000;

/// The group of buffers; there is one.
const GROUP: u16 = 0;

/// How long the end of a ring waits for its operations, in tries and for each.
const CANCEL_TRIES: usize = 100;
const CANCEL_WAIT: Duration = Duration::from_millis(10);

/// Sockets and what goes on with them.
pub struct Ring {
    uring: ManuallyDrop<IoUring>,
    /// What the kernel receives into.
    buffers: ManuallyDrop<Buffers>,
    /// What is sent by range.
    block: ManuallyDrop<Arc<[u8]>>,
    /// What is sent by copy, until the kernel has sent it.
    copies: ManuallyDrop<HashMap<Name, Vec<u8>>>,
    /// Memory of copies that were sent, for further ones.
    spare: Vec<Vec<u8>>,
    slots: Vec<Slot>,
    /// The buffer that the last event is about.
    lent: Option<(u16, u32)>,
    /// Sockets and addresses that queued operations name. Dropped when the kernel has taken those.
    closing: Vec<(OwnedFd, Option<Box<SockAddr>>)>,
    /// Receives under way, those of closed sockets included: the kernel may write to the buffers.
    receives: usize,
    /// Whether the ring belongs to a thread.
    enabled: bool,
}

/// A place for a socket.
#[derive(Debug, Default)]
struct Slot {
    socket: Option<OwnedFd>,
    /// The address to connect to, for the kernel to read.
    address: Option<Box<SockAddr>>,
    /// Counts the sockets, to tell what is late from another.
    generation: u32,
    /// Whether what comes is received.
    receiving: bool,
    /// Whether a send is to be reported.
    sending: bool,
}

/// What happened to the socket of a slot.
#[derive(Debug)]
pub enum Event {
    /// It is connected.
    Connected,
    /// A long or copied request has been sent.
    Sent,
    /// Something has come; [`Ring::bytes`] has it until the next event is taken.
    Received,
    /// The peer has ended the connection.
    Ended,
    /// An operation has failed.
    Failed(io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect = 1,
    Send = 2,
    Receive = 3,
    Cancel = 4,
}

impl Ring {
    /// A ring for `slots` sockets. `block` is what [`Ring::send`] sends parts of.
    ///
    /// # Errors
    ///
    /// When the kernel does not have what is needed, or does not allow it: containers often forbid
    /// io_uring.
    pub fn new(slots: usize, block: Arc<[u8]>) -> io::Result<Self> {
        let entries = (slots * 2).next_power_of_two().clamp(QUEUED_MIN, QUEUED_MAX) as u32;
        // Disabled until a thread waits with it, which is then the one that it belongs to.
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_r_disabled()
            .setup_cqsize(entries * 2)
            .build(entries)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Connect::CODE,
            opcode::Send::CODE,
            opcode::Recv::CODE,
            opcode::AsyncCancel::CODE,
        ];
        if !needed.iter().all(|&code| probe.is_supported(code)) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let count = (slots * 2).next_power_of_two().clamp(BUFFERS_MIN, BUFFERS_MAX);
        let mut buffers = Buffers::new(count as u16, BUFFER_BYTES);
        // SAFETY: `drop` frees the buffers after the ring, and not at all if a receive may go on.
        unsafe { buffers.register(&uring.submitter(), GROUP)? };
        Ok(Self {
            uring: ManuallyDrop::new(uring),
            buffers: ManuallyDrop::new(buffers),
            block: ManuallyDrop::new(block),
            copies: ManuallyDrop::default(),
            spare: Vec::new(),
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            lent: None,
            closing: Vec::new(),
            receives: 0,
            enabled: false,
        })
    }

    /// Makes room for the slots below `slots`.
    pub fn grow(&mut self, slots: usize) {
        let slots = slots.max(self.slots.len());
        self.slots.resize_with(slots, Slot::default);
    }

    /// Puts a socket into a slot, in place of what was there, and connects it.
    ///
    /// # Errors
    ///
    /// When the kernel takes no more operations.
    ///
    /// # Panics
    ///
    /// When there is no such slot.
    pub fn connect(&mut self, slot: usize, socket: OwnedFd, address: SockAddr) -> io::Result<()> {
        self.close(slot)?;
        let address = Box::new(address);
        let operation =
            opcode::Connect::new(Fd(socket.as_raw_fd()), address.as_ptr().cast(), address.len());
        let place = &mut self.slots[slot];
        place.socket = Some(socket);
        place.address = Some(address);
        self.push(operation.build(), Kind::Connect, slot)
    }

    /// Sends a range of the block.
    ///
    /// # Errors
    ///
    /// When the kernel takes no more operations.
    ///
    /// # Panics
    ///
    /// When there is no such slot, no socket in it, or no such range.
    pub fn send(&mut self, slot: usize, range: Range<usize>) -> io::Result<()> {
        let bytes = &self.block[range];
        let socket = self.slots[slot].socket.as_ref().expect("a socket to send on");
        let operation = opcode::Send::new(Fd(socket.as_raw_fd()), bytes.as_ptr(), length(bytes)?)
            .flags(MSG_WAITALL | MSG_NOSIGNAL)
            .build();
        if bytes.len() > UNREPORTED_BYTES_MAX {
            self.slots[slot].sending = true;
            return self.push(operation, Kind::Send, slot);
        }
        self.push(operation.flags(squeue::Flags::SKIP_SUCCESS), Kind::Send, slot)
    }

    /// Sends a copy of `bytes`. Not while [`Ring::is_sending`].
    ///
    /// # Errors
    ///
    /// When the kernel takes no more operations, or a copy is being sent on this socket already.
    ///
    /// # Panics
    ///
    /// When there is no such slot or no socket in it.
    pub fn send_copy(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()> {
        let place = &self.slots[slot];
        let socket = place.socket.as_ref().expect("a socket to send on");
        if place.sending {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.extend_from_slice(bytes);
        let operation = opcode::Send::new(Fd(socket.as_raw_fd()), copy.as_ptr(), length(bytes)?)
            .flags(MSG_WAITALL | MSG_NOSIGNAL)
            .build();
        let name = self.name(Kind::Send, slot);
        self.copies.insert(name, copy);
        let pushed = self.push(operation, Kind::Send, slot);
        self.slots[slot].sending = pushed.is_ok();
        if pushed.is_err() {
            self.copies.remove(&name);
        }
        pushed
    }

    /// Whether a send is under way that will be reported.
    #[must_use]
    pub fn is_sending(&self, slot: usize) -> bool {
        self.slots[slot].sending
    }

    /// Receives from now on what comes on a socket.
    ///
    /// # Errors
    ///
    /// When the kernel takes no more operations.
    ///
    /// # Panics
    ///
    /// When there is no such slot or no socket in it.
    pub fn receive(&mut self, slot: usize) -> io::Result<()> {
        let place = &self.slots[slot];
        if place.receiving {
            return Ok(());
        }
        let socket = place.socket.as_ref().expect("a socket to receive on");
        let operation = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        self.push(operation, Kind::Receive, slot)?;
        self.slots[slot].receiving = true;
        self.receives += 1;
        Ok(())
    }

    /// Closes the socket of a slot, if there is one. Nothing is reported of it any more.
    ///
    /// # Errors
    ///
    /// When the kernel takes no more operations.
    ///
    /// # Panics
    ///
    /// When there is no such slot.
    pub fn close(&mut self, slot: usize) -> io::Result<()> {
        let place = &mut self.slots[slot];
        let Some(socket) = place.socket.take() else { return Ok(()) };
        let address = place.address.take();
        let is_used = [
            (Kind::Receive, place.receiving),
            (Kind::Send, place.sending),
            (Kind::Connect, address.is_some()),
        ];
        // The kernel holds on to the socket for its operations: they have to go.
        for (kind, used) in is_used {
            if used {
                let operation = opcode::AsyncCancel::new(self.name(kind, slot).0);
                let operation = operation.build().flags(squeue::Flags::SKIP_SUCCESS);
                self.push(operation, Kind::Cancel, slot)?;
            }
        }
        let place = &mut self.slots[slot];
        place.generation = (place.generation + 1) & Name::GENERATION_MAX;
        place.receiving = false;
        place.sending = false;
        self.closing.push((socket, address));
        Ok(())
    }

    /// Hands to the kernel what is queued, and waits until something has happened or the time is over.
    ///
    /// # Errors
    ///
    /// When another thread has waited with this ring before, or the system is out of resources.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        self.take_back();
        let time = Timespec::from(timeout);
        self.enter(1, &SubmitArgs::new().timespec(&time))
    }

    /// Hands to the kernel what is queued.
    ///
    /// # Errors
    ///
    /// As [`Ring::wait`].
    pub fn submit(&mut self) -> io::Result<()> {
        self.enter(0, &SubmitArgs::new())
    }

    /// Hands to the kernel what is queued, and has it report what has happened. No system call if there is
    /// neither.
    ///
    /// # Errors
    ///
    /// As [`Ring::wait`].
    pub fn poll(&mut self) -> io::Result<()> {
        self.take_back();
        let queue = self.uring.submission();
        let is_idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
        drop(queue);
        if self.enabled && is_idle { Ok(()) } else { self.submit() }
    }

    /// Whether something has happened that was not taken.
    pub fn has_events(&mut self) -> bool {
        !self.uring.completion().is_empty()
    }

    /// Takes the next thing that has happened, and the slot that it happened to.
    pub fn take(&mut self) -> Option<(usize, Event)> {
        loop {
            self.take_back();
            let entry = self.uring.completion().next()?;
            if let Some(event) = self.understand(&entry) {
                return Some(event);
            }
        }
    }

    /// What has come, if the last event was [`Event::Received`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self.lent {
            // SAFETY: a completion has named the buffer, and it is given again by `take_back`, which
            // also clears `lent`.
            Some((buffer, length)) => unsafe { self.buffers.bytes(buffer, length) },
            None => &[],
        }
    }

    /// Says what a completion means; nothing if it is about a socket that is gone.
    fn understand(&mut self, entry: &cqueue::Entry) -> Option<(usize, Event)> {
        let (result, flags) = (entry.result(), entry.flags());
        let name = Name::from(entry.user_data());
        let slot = name.slot();
        let is_last = !cqueue::more(flags);
        if let Some(buffer) = cqueue::buffer_select(flags) {
            self.lent = Some((buffer, result.max(0) as u32));
        }
        match name.kind() {
            Some(Kind::Receive) if is_last => self.receives -= 1,
            Some(Kind::Send) => {
                if let Some(mut copy) = self.copies.remove(&name)
                    && copy.capacity() <= SPARE_BYTES_MAX
                {
                    copy.clear();
                    self.spare.push(copy);
                }
            }
            _ => {}
        }
        let place = self.slots.get_mut(slot)?;
        if place.generation != name.generation() {
            return None;
        }
        let failed = || Event::Failed(io::Error::from_raw_os_error(-result));
        let event = match name.kind()? {
            Kind::Cancel => return None,
            Kind::Connect => {
                place.address = None;
                if result < 0 { failed() } else { Event::Connected }
            }
            Kind::Send => {
                place.sending = false;
                if result < 0 { failed() } else { Event::Sent }
            }
            Kind::Receive => {
                place.receiving &= !is_last;
                let goes_on = result > 0 || result == -Errno::NOBUFS.raw_os_error();
                // It may end for want of buffers, which are given back by now, or for reasons of the
                // kernel's own.
                if goes_on
                    && is_last
                    && let Err(error) = self.receive(slot)
                {
                    return Some((slot, Event::Failed(error)));
                }
                match result {
                    0 => Event::Ended,
                    1.. => Event::Received,
                    _ if goes_on => return None,
                    _ => failed(),
                }
            }
        };
        Some((slot, event))
    }

    /// Queues an operation.
    fn push(&mut self, entry: squeue::Entry, kind: Kind, slot: usize) -> io::Result<()> {
        let entry = entry.user_data(self.name(kind, slot).0);
        // SAFETY: the memory that the entry names lives until the operation is over: the buffers and
        // the block as long as the ring, copies until their completion, addresses and sockets, which
        // the kernel looks at when it takes the entry, until it has.
        if unsafe { self.uring.submission().push(&entry) }.is_ok() {
            return Ok(());
        }
        // Full: the kernel takes what is there.
        self.enter(0, &SubmitArgs::new())?;
        // SAFETY: as above.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.map_err(|_| io::ErrorKind::ResourceBusy.into())
    }

    fn enter(&mut self, want: usize, arguments: &SubmitArgs<'_, '_>) -> io::Result<()> {
        if !self.enabled {
            self.uring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        match self.uring.submitter().submit_with_args(want, arguments) {
            Ok(_) => {}
            // The time was over; a signal came; the queue of completions is full, so there is something
            // to do.
            Err(error)
                if [Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN]
                    .contains(&Errno::from_io_error(&error).unwrap_or(Errno::INVAL)) => {}
            Err(error) => return Err(error),
        }
        if !self.closing.is_empty() && self.uring.submission().is_empty() {
            self.closing.clear();
        }
        Ok(())
    }

    /// Gives the buffer of the last event back to the kernel.
    fn take_back(&mut self) {
        if let Some((buffer, _)) = self.lent.take() {
            self.buffers.give(buffer);
        }
    }

    fn name(&self, kind: Kind, slot: usize) -> Name {
        Name::new(kind, self.slots[slot].generation, slot)
    }

    /// Ends everything that goes on. Whether the kernel is done with the memory.
    fn cancel_all(&mut self) -> bool {
        if !self.enabled {
            // Nothing was ever handed to the kernel.
            return true;
        }
        let cancelled = self.uring.submitter().register_sync_cancel(None, CancelBuilder::any());
        if cancelled.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
            return false;
        }
        for _ in 0..CANCEL_TRIES {
            while self.take().is_some() {}
            if self.receives == 0 && self.copies.is_empty() {
                return true;
            }
            if self.wait(CANCEL_WAIT).is_err() {
                return false;
            }
        }
        false
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            // What comes late is about sockets that are gone: no receive is begun again.
            slot.generation = (slot.generation + 1) & Name::GENERATION_MAX;
        }
        let is_done = self.cancel_all();
        // SAFETY: dropped here and nowhere else, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.uring) };
        if is_done {
            // SAFETY: as above; the kernel has no operation left that knows this memory. Otherwise it
            // is never freed, which is the lesser evil.
            unsafe {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.block);
                ManuallyDrop::drop(&mut self.copies);
            }
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { slots, receives, enabled, .. } = self;
        let slots = slots.len();
        f.debug_struct("Ring")
            .field("slots", &slots)
            .field("receives", receives)
            .field("enabled", enabled)
            .finish_non_exhaustive()
    }
}

/// What an operation is called: its kind, its slot, and which of the slot's sockets it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name(u64);

impl Name {
    const SLOT_BITS: u32 = 32;
    const GENERATION_BITS: u32 = 24;
    const GENERATION_MAX: u32 = (1 << Self::GENERATION_BITS) - 1;

    fn new(kind: Kind, generation: u32, slot: usize) -> Self {
        let kind = (kind as u64) << (Self::SLOT_BITS + Self::GENERATION_BITS);
        Self(kind | u64::from(generation) << Self::SLOT_BITS | slot as u64)
    }

    fn kind(self) -> Option<Kind> {
        let kind = self.0 >> (Self::SLOT_BITS + Self::GENERATION_BITS);
        Kind::ALL.into_iter().find(|known| *known as u64 == kind)
    }

    fn generation(self) -> u32 {
        (self.0 >> Self::SLOT_BITS) as u32 & Self::GENERATION_MAX
    }

    fn slot(self) -> usize {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as usize
    }
}

impl From<u64> for Name {
    fn from(name: u64) -> Self {
        Self(name)
    }
}

impl Kind {
    const ALL: [Self; 4] = [Self::Connect, Self::Send, Self::Receive, Self::Cancel];
}

/// As the kernel counts. Longer requests than 4 GiB there are none.
fn length(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
