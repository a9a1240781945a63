//! Memory that the kernel receives into: equal buffers that it takes one after the other.
//!
//! A buffer belongs to the kernel from when it is given to when a completion names it, and to us until
//! it is given again.
//!
//! Source: io_uring_setup_buf_ring(3), io_uring_register_buf_ring(3).

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// The kernel wants the ring of entries at the start of a page.
const PAGE_BYTES: usize = 4096;

/// The buffers and the ring that hands them to the kernel.
#[derive(Debug)]
pub(crate) struct Buffers {
    entries: Block,
    data: Block,
    count: u16,
    size: u32,
    /// Buffers given so far.
    tail: u16,
}

/// A piece of memory that nobody but the kernel and its owner knows of.
#[derive(Debug)]
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory of a block is reached through its owner alone; nothing in it belongs to a thread.
unsafe impl Send for Block {}

impl Buffers {
    /// `count` buffers, a power of two, of `size` bytes each.
    pub(crate) fn new(count: u16, size: u32) -> Self {
        assert!(
            count.is_power_of_two() && size > 0,
            "a power of two of buffers that hold something"
        );
        let entries = Block::new(usize::from(count) * size_of::<BufRingEntry>());
        let data = Block::new(usize::from(count) * size as usize);
        Self { entries, data, count, size, tail: 0 }
    }

    /// Makes the buffers known to the kernel as `group`, and gives it all of them.
    ///
    /// # Errors
    ///
    /// When the kernel does not know of such buffers.
    ///
    /// # Safety
    ///
    /// The buffers must outlive the ring of the submitter, or at least all that it receives.
    pub(crate) unsafe fn register(
        &mut self,
        submitter: &Submitter<'_>,
        group: u16,
    ) -> io::Result<()> {
        let entries = self.entries.start.as_ptr() as u64;
        // SAFETY: the entries are zeroed, as many as is said, at the start of a page, and outlive the
        // ring as the caller promises.
        unsafe { submitter.register_buf_ring_with_flags(entries, self.count, group, 0)? };
        for buffer in 0..self.count {
            self.give(buffer);
        }
        Ok(())
    }

    /// Gives a buffer to the kernel, which may write to it from now on.
    pub(crate) fn give(&mut self, buffer: u16) {
        assert!(buffer < self.count, "a buffer of these");
        let at = usize::from(self.tail & (self.count - 1));
        let entries: *mut BufRingEntry = self.entries.start.as_ptr().cast();
        // SAFETY: `buffer` is less than the number of buffers, so its start lies within the data.
        let start =
            unsafe { self.data.start.as_ptr().add(usize::from(buffer) * self.size as usize) };
        // SAFETY: `at` is less than the number of entries. The kernel does not write to entries, and
        // does not read this one before the tail has passed it.
        let entry = unsafe { &mut *entries.add(at) };
        entry.set_addr(start as u64);
        entry.set_len(self.size);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry, is aligned as one, and is only written here; the
        // kernel reads it.
        let tail = unsafe { &*BufRingEntry::tail(entries).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }

    /// The first `length` bytes of a buffer.
    ///
    /// # Safety
    ///
    /// A completion must have named the buffer since it was last given.
    pub(crate) unsafe fn bytes(&self, buffer: u16, length: u32) -> &[u8] {
        assert!(buffer < self.count && length <= self.size, "a buffer of these, and its length");
        // SAFETY: the range lies within the data by what was asserted; it was zeroed when allocated;
        // the kernel does not write to it until `give`, which needs `&mut self`.
        unsafe {
            let start = self.data.start.as_ptr().add(usize::from(buffer) * self.size as usize);
            std::slice::from_raw_parts(start, length as usize)
        }
    }
}

impl Block {
    fn new(bytes: usize) -> Self {
        let layout =
            Layout::from_size_align(bytes, PAGE_BYTES).expect("far from the address space");
        assert!(bytes > 0, "a block has bytes");
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
