/* SPDX-License-Identifier: Apache-2.0
 *
 * Remote memory: a session is a space of bytes that lies in the memory of other hosts (donors,
 * `rocegw-memory donate`), read and written by RDMA through any verbs device. The request path is
 * that of RDMAbox (CLUSTER 2020): one merge queue for each direction, adjacent requests leave as
 * one RDMA operation, others share a doorbell, a window bounds the bytes in flight, completions are
 * polled adaptively. docs/user/remote_memory.md explains it; docs/reference/man has a page.
 *
 * The space is zero at first. Each page of 4096 bytes is kept by as many donors as there are
 * replicas. A page is lost when all donors that hold it are lost: reading it fails with EIO until
 * it has been written whole. With a disk copy, only pages are lost that the disk lacks as well. All
 * calls may be made by any thread, except where a call says
 * otherwise. Errors are negative errno values. After fork, the child must not use its parent's
 * sessions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocegw_memory_session;

struct rocegw_memory_donor {
  const char* host; /* name or address */
  const char* port; /* NULL: 7475 */
};

enum rocegw_memory_polling {
  ROCEGW_MEMORY_POLL_ADAPTIVE = 0,
  ROCEGW_MEMORY_POLL_BUSY = 1,
  ROCEGW_MEMORY_POLL_EVENT = 2,
  ROCEGW_MEMORY_POLL_EVENT_BATCH = 3,
  ROCEGW_MEMORY_POLL_HYBRID = 4,
};

/* Bits of rocegw_memory_options.batching. */
enum rocegw_memory_batching {
  ROCEGW_MEMORY_MERGE = 1, /* adjacent requests become one RDMA operation */
  ROCEGW_MEMORY_CHAIN = 2, /* operations that leave together share a doorbell */
};

/* Begin with ROCEGW_MEMORY_DEFAULTS; grows at its end. */
struct rocegw_memory_options {
  const struct rocegw_memory_donor* donors;
  size_t donor_count;          /* 1 to 64; 0: donors_dir */
  uint64_t size;               /* bytes of the space; rounded up to whole slabs */
  uint32_t replicas;           /* 1 to 4, at most donor_count */
  const char* tenant;          /* name that quotas of donors apply to; NULL: "default" */
  uint64_t slab_bytes;         /* unit of placement: a power of two, 64 KiB to 1 GiB */
  uint64_t window_bytes;       /* in flight at once; 0: no admission control */
  uint64_t most_merged_bytes;  /* of one RDMA operation: 4 KiB to 16 MiB, a multiple of 4 KiB */
  uint64_t pool_bytes;         /* of registered memory for rocegw_memory_alloc; 0: none */
  uint64_t copy_limit_bytes;   /* requests up to this are copied, larger ones registered;
                                  0: measured at start */
  uint64_t most_queued_bytes;  /* of requests that are not complete; more get EAGAIN */
  uint32_t batching;           /* enum rocegw_memory_batching */
  uint32_t most_chained;       /* RDMA operations behind one doorbell, 1 to 64 */
  uint32_t polling;            /* enum rocegw_memory_polling */
  uint32_t poll_completions;   /* taken by one look at the completion queue, 1 to 64 */
  uint32_t poll_retries;       /* empty looks before adaptive polling waits for an event */
  uint32_t pollers;            /* completion queues with a thread each; 0: one for each donor */
  uint32_t timeout_ms;         /* a donor that completes nothing for so long is lost */
  uint32_t connect_timeout_ms; /* for each donor */
  const char* disk_copy;       /* file that gets all writes as well; NULL: none */
  uint64_t disk_queue_bytes;   /* of writes that wait for the disk; 0: 16 MiB */
  uint32_t disk_copy_keep;     /* 1: the space begins with what the file holds, not with zeroes */
  const char* donors_dir;      /* folder of the agent of this host ("/run/rocegw-donors"), which
                                  names donors of the fleet that have room, also later; NULL: the
                                  donors above */
};

#define ROCEGW_MEMORY_DEFAULTS                                                          \
  {                                                                                     \
    .replicas = 1, .slab_bytes = (uint64_t)64 << 20, .window_bytes = (uint64_t)8 << 20, \
    .most_merged_bytes = (uint64_t)1 << 20, .most_queued_bytes = (uint64_t)64 << 20,    \
    .batching = ROCEGW_MEMORY_MERGE | ROCEGW_MEMORY_CHAIN, .most_chained = 32,          \
    .poll_completions = 16, .poll_retries = 120, .pollers = 1, .timeout_ms = 5000,      \
    .connect_timeout_ms = 5000                                                          \
  }

/* Connects to the donors and leases size * replicas bytes of them. Takes at most about
 * connect_timeout_ms for each donor and as long again for the leases, and a second for each GiB of
 * them: ETIMEDOUT then. options_size is
 * sizeof(struct rocegw_memory_options). `why` (may be NULL) gets a line that explains a failure.
 * EINVAL: an option. ENOENT: the fleet has no such donors. ENODEV, EHOSTUNREACH, ECONNREFUSED,
 * ETIMEDOUT: fewer donors than replicas could be reached. ENOSPC: the donors do not have so much
 * memory for this tenant. */
int rocegw_memory_open(const struct rocegw_memory_options* options, size_t options_size,
                       struct rocegw_memory_session** session, char* why, size_t why_size);

/* Waits for all requests, returns the leases and disconnects. A disk copy gets what it lacks
 * before, for at most 30 seconds; pages that it lacks then fail with EIO in a session that
 * continues. No other thread may use the session; not from a callback. */
void rocegw_memory_close(struct rocegw_memory_session* session);

/* Bytes of the space. */
uint64_t rocegw_memory_size(const struct rocegw_memory_session* session);

/* status: 0 or a negative errno value: EIO, when all donors that hold a page are lost. Called by a
 * thread of the session, or by the thread that makes the request; must not wait for requests. */
typedef void (*rocegw_memory_done)(void* argument, int status);

/* Start a read or a write of [offset, offset + length). The buffer belongs to the session until
 * `done` is called, once. Requests that overlap and are in progress at the same time have no order
 * among each other. A write is complete when every donor that holds its pages and is alive has it.
 * EINVAL: not within the space, or length 0. EAGAIN: too many bytes are queued; `done` is not
 * called when a call fails. */
int rocegw_memory_read(struct rocegw_memory_session* session, uint64_t offset, void* buffer,
                       size_t length, rocegw_memory_done done, void* argument);
int rocegw_memory_write(struct rocegw_memory_session* session, uint64_t offset, const void* buffer,
                        size_t length, rocegw_memory_done done, void* argument);

/* The same, and wait for the end; EAGAIN is tried again. Not from a callback. */
int rocegw_memory_read_wait(struct rocegw_memory_session* session, uint64_t offset, void* buffer,
                            size_t length);
int rocegw_memory_write_wait(struct rocegw_memory_session* session, uint64_t offset,
                             const void* buffer, size_t length);

/* Waits until all writes that were complete before the call are on the disk (fdatasync of the disk
 * copy). Without a disk copy there is nothing to wait for. `done` is called as for a write. EIO:
 * the disk copy lacks data, because the disk failed or pages are lost; while replicas are live, it
 * is copied from them in the background, and a later flush succeeds. Lost pages fail every flush
 * until they have been written whole. */
void rocegw_memory_flush(struct rocegw_memory_session* session, rocegw_memory_done done,
                         void* argument);
int rocegw_memory_flush_wait(struct rocegw_memory_session* session);

/* Memory of the session's pool: registered, so that requests with buffers in it are neither copied
 * nor registered. Multiples of 4096 bytes. NULL when the pool has no such room. */
void* rocegw_memory_alloc(struct rocegw_memory_session* session, size_t bytes);
void rocegw_memory_free(struct rocegw_memory_session* session, void* memory);

/* Replaces window_bytes by what the function returns each time (bytes; 0 admits nothing beside what
 * is in flight, UINT64_MAX everything). Called under a lock of the session: must be quick and call
 * nothing of this library. NULL restores the window. */
typedef uint64_t (*rocegw_memory_window)(void* argument, uint64_t in_flight_bytes);
void rocegw_memory_set_window(struct rocegw_memory_session* session, rocegw_memory_window window,
                              void* argument);

/* Grows at its end. Counts since the session was opened, but for those that say "now". */
struct rocegw_memory_statistics {
  uint64_t read_requests, write_requests; /* of callers */
  uint64_t read_bytes, write_bytes;
  uint64_t read_operations, write_operations; /* RDMA operations; writes count for each replica */
  uint64_t doorbells;                         /* calls of ibv_post_send */
  uint64_t merged_requests;                   /* that left within the operation of another one */
  uint64_t copied_bytes;                      /* through the staging buffer */
  uint64_t registered_requests;               /* whose buffer was registered for them */
  uint64_t failed_requests;
  uint64_t window_refusals; /* operations that had to wait for the window */
  uint64_t peak_in_flight_bytes;
  uint64_t in_flight_bytes;  /* now */
  uint64_t copy_limit_bytes; /* as measured or chosen */
  uint64_t poll_looks, poll_wakeups, poll_completions, poll_cpu_ns;
  uint64_t donors_connected; /* now */
  uint64_t donors_lost;
  uint64_t donor_timeouts; /* donors lost because they completed nothing in time */
  uint64_t retried_reads;  /* read again from another replica */
  uint64_t restored_bytes; /* copied to new replicas */
  uint64_t slabs;          /* now, as are the following */
  uint64_t slabs_degraded; /* with fewer replicas than asked for */
  uint64_t slabs_unserved; /* without any */
  uint64_t lost_pages;
  uint64_t disk_up;           /* now: 1 when the disk copy accepts writes */
  uint64_t disk_queued_bytes; /* now */
  uint64_t disk_written_bytes, disk_read_bytes;
  uint64_t disk_errors;        /* operations of the disk that failed */
  uint64_t disk_timeouts;      /* operations that took longer than timeout_ms: the copy was down */
  uint64_t disk_waits;         /* times that writes waited because the disk's queue was full */
  uint64_t disk_wait_ns;       /* how long they did */
  uint64_t disk_missing_pages; /* now: on replicas only; copied to the disk in the background */
  uint64_t disk_copies;        /* 1: the session has a disk copy */
  uint64_t disk_flush_fails; /* now: 1 when a flush would fail, because the disk does not answer or
                                lacks data */
  uint64_t donors_draining;  /* now: connected donors that ask for their memory */
  uint64_t leases_returned;  /* of replicas that moved away from draining donors */
  uint64_t slabs_shared_domain; /* now: with two replicas in one failure domain */
  uint64_t donor_faults;        /* donors lost because they said what no question had asked for */
  uint64_t device_losses;       /* times that the device (the gateway of this host) ended in use */
  uint64_t device_stall_ns;     /* how long requests waited because of that */
  uint64_t donors_suspended;    /* now: donors where the session is to continue by another device */
  uint64_t agreed_bytes;        /* copied between replicas of a process that was killed */
  uint64_t placement_saves;     /* times that the placement of replicas was saved in its file */
  uint64_t placement_errors;    /* times that it could not be */
};
void rocegw_memory_get_statistics(struct rocegw_memory_session* session,
                                  struct rocegw_memory_statistics* statistics,
                                  size_t statistics_size);

#ifdef __cplusplus
}
#endif
