/* SPDX-License-Identifier: Apache-2.0
 *
 * Window onto remote memory: a part of a session's space as memory of this process, to load from
 * and to store to. Pages are read from the donors when they are touched, with read-ahead where
 * faults are sequential, and written back when they are evicted or synchronized. At most
 * `resident_bytes` of the window take memory of this host.
 *
 * The window uses userfaultfd(2) and needs Linux 6.6; from 6.8 on, pages that the kernel has pinned
 * (O_DIRECT, io_uring) stay resident meanwhile. Without privilege (CAP_SYS_PTRACE,
 * vm.unprivileged_userfaultfd or /dev/userfaultfd) it works as well, but system calls fail with
 * EFAULT when they meet a page that is not resident: touch it before. A page whose donors are all
 * lost raises SIGBUS. After fork, the child does not have the window. The buffers of requests of
 * rocegw_memory.h must not be in a window.
 *
 * Errors are negative errno values. docs/user/remote_memory.md#window explains it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocegw_memory_session; /* rocegw_memory.h */
struct rocegw_memory_map;

/* Maps [offset, offset + size) of the session's space, which nothing else may use meanwhile. Both
 * are multiples of 4096; resident_bytes is at least 1 MiB. `why` (may be NULL) gets a line that
 * explains a failure. EINVAL: a number. ENOSYS, EPERM: no userfaultfd, or one without what is
 * needed. */
int rocegw_memory_map_open(struct rocegw_memory_session* session, uint64_t offset, uint64_t size,
                           uint64_t resident_bytes, struct rocegw_memory_map** window, char* why,
                           size_t why_size);

/* Thread that reads a page that is touched. */
enum rocegw_memory_map_faults {
  /* A thread of the window, which serves system calls as well. */
  ROCEGW_MEMORY_MAP_HANDLER_THREAD = 0,
  /* The thread that touches the page, in a handler of SIGBUS: faster, because no other thread has
   * to run. Needs Linux 6.8. System calls fail with EFAULT when they meet a page that is not
   * resident, whatever the privilege. */
  ROCEGW_MEMORY_MAP_FAULTING_THREAD = 1,
};

/* Grows at its end. */
struct rocegw_memory_map_options {
  uint64_t resident_bytes; /* at least 1 MiB */
  uint32_t faults;         /* enum rocegw_memory_map_faults */
};

/* As rocegw_memory_map_open. For ROCEGW_MEMORY_MAP_FAULTING_THREAD:
 *
 * - The library handles SIGBUS from the first such window on, and hands on what is of no window, or
 *   of a lost page, to the handler that the program had then. A program that sets a handler later
 *   calls rocegw_memory_map_handle_fault from it.
 * - Threads that touch the window must not block SIGBUS, and have 16 KiB of stack left.
 * - The handler takes locks and memory of malloc: calls of malloc, of libibverbs or of this library
 *   must not touch the window, so it must not be the heap, nor a buffer of their requests.
 *
 * EMFILE: there are 64 such windows. ENOSYS: also when the kernel cannot move pages. */
int rocegw_memory_map_open_with(struct rocegw_memory_session* session, uint64_t offset,
                                uint64_t size, const struct rocegw_memory_map_options* options,
                                size_t options_size, struct rocegw_memory_map** window, char* why,
                                size_t why_size);

/* For handlers of SIGBUS with SA_SIGINFO, which pass on what they get. 1: the fault was one of a
 * window and is handled, return from the handler. 0: it was another one. */
int rocegw_memory_map_handle_fault(const void* siginfo, const void* context);

/* Address of the first byte. Valid until the window is closed. */
void* rocegw_memory_map_address(struct rocegw_memory_map* window);

/* Writes all pages back that were stored to before the call. EIO: not all of them could be written;
 * they stay resident. Stores by other threads meanwhile may be written back or not. Any thread. */
int rocegw_memory_map_sync(struct rocegw_memory_map* window);

/* Synchronizes and unmaps. No other thread may use the window. Returns what sync returned. */
int rocegw_memory_map_close(struct rocegw_memory_map* window);

/* Grows at its end. In pages of 4096 bytes; counts since the window was opened, but for those that
 * say "now". */
struct rocegw_memory_map_statistics {
  uint64_t pages;    /* of the window */
  uint64_t resident; /* now, with those that are being read */
  uint64_t faults;   /* of threads that waited for a page */
  uint64_t read;     /* with read-ahead */
  uint64_t written_back, evicted;
  uint64_t lost;                /* that raise SIGBUS */
  uint64_t write_back_failures; /* pages stayed resident because no donor took them */
  uint64_t reactivated; /* touched again when they were next to be evicted: nothing was read */
};
void rocegw_memory_map_get_statistics(struct rocegw_memory_map* window,
                                      struct rocegw_memory_map_statistics* statistics,
                                      size_t statistics_size);

#ifdef __cplusplus
}
#endif
