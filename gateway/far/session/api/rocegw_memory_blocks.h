/* SPDX-License-Identifier: Apache-2.0
 *
 * Block pool in remote memory: values of up to one block are put and got by key. It is a cache:
 * when all blocks are taken, the value that was not used for longest is evicted, and a value whose
 * donors are all lost is forgotten. The shape fits the key-value caches of inference servers: keys
 * are hashes, blocks are 16 KiB to 2 MiB, requests of a layer are started together and complete in
 * any order. There are two kinds: a pool of this process alone, in the space of its session
 * (rocegw_memory_blocks_open), and a pool that the processes of many hosts share, whose index is in
 * the memory of its donors (rocegw_memory_blocks_join).
 *
 * All calls may be made by any thread, except where a call says otherwise. Errors are negative
 * errno values. docs/user/remote_memory.md#block-pool explains it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ROCEGW_MEMORY_MOST_KEY_BYTES = 64, ROCEGW_MEMORY_MOST_BLOCK_BYTES = 16 << 20 };

struct rocegw_memory_session; /* rocegw_memory.h, as the next one */
struct rocegw_memory_donor;
struct rocegw_memory_blocks;

/* Makes a pool of [offset, offset + size) of the session's space, which nothing else may use. The
 * size of a block is a multiple of 4096 bytes, at most 16 MiB; offset is a multiple of it. EINVAL:
 * one of them is not so, or not within the space. */
int rocegw_memory_blocks_open(struct rocegw_memory_session* session, uint64_t offset, uint64_t size,
                              uint64_t block_bytes, struct rocegw_memory_blocks** blocks);

/* How a process reaches the donors of a shared pool. */
enum rocegw_memory_blocks_path {
  /* Endpoints (rocegwdv.h) where both devices have them, which needs no connection; otherwise a
   * queue pair. */
  ROCEGW_MEMORY_BLOCKS_ANY_PATH = 0,
  ROCEGW_MEMORY_BLOCKS_ENDPOINTS = 1,
  ROCEGW_MEMORY_BLOCKS_QUEUE_PAIRS = 2,
};

/* Start with ROCEGW_MEMORY_BLOCKS_DEFAULTS. Grows at its end. */
struct rocegw_memory_blocks_options {
  const struct rocegw_memory_donor* donors; /* that run rocegw-memory blocks; port NULL: 7479 */
  size_t donor_count;
  const void* secret;  /* of the pool: whoever has it is a member */
  size_t secret_bytes; /* 16 to 64 */
  uint32_t replicas;   /* donors that get each value, 1 to 4 */
  /* Requests under way; each takes a block and 8 KiB of registered memory of this process. */
  uint32_t most_requests;
  uint32_t path;       /* enum rocegw_memory_blocks_path */
  uint32_t timeout_ms; /* after which a donor that completes nothing is lost, until it answers */
  uint32_t connect_timeout_ms;
  /* Instead of donors (NULL, 0): the fleet names them, and those that come and go later. The pool's
   * name, which its donors announce (rocegw-memory blocks --pool), its tenant (NULL: "default"),
   * and the folder in which the agent of this host answers (NULL: /run/rocegw-donors). */
  const char* pool;
  const char* tenant;
  const char* donors_dir;
};

#define ROCEGW_MEMORY_BLOCKS_DEFAULTS \
  { .replicas = 1, .most_requests = 64, .timeout_ms = 2000, .connect_timeout_ms = 5000, }

/* Joins a shared pool. A value that one process has put is found by all others. At least one donor
 * has to answer; the others are tried again in the background. `why` (may be NULL) gets a line that
 * explains a failure. ENOENT: the fleet has no such pool for this host. EINVAL: an option, or
 * donors with blocks of different sizes. EACCES: a donor has another secret. EOPNOTSUPP: there are
 * no endpoints. ENODEV, EHOSTUNREACH, ECONNREFUSED, ETIMEDOUT: no donor could be reached.
 *
 * The calls below differ for a shared pool: values are copied; rocegw_memory_blocks_has and _remove
 * ask the donors and wait, so not from a callback; a put can fail with EBUSY, when other processes
 * changed the same part of the index each time, and gets then see the older value. A value is
 * found at the donors that are live: after a donor was cut off from some processes and came back,
 * an older value of a key can be found there. Use hashes of the content as keys. */
int rocegw_memory_blocks_join(const struct rocegw_memory_blocks_options* options,
                              size_t options_size, struct rocegw_memory_blocks** blocks, char* why,
                              size_t why_size);

/* Most bytes of a value. */
uint64_t rocegw_memory_blocks_block_bytes(const struct rocegw_memory_blocks* blocks);

/* Waits for all requests. Before the session is closed; no other thread may use the pool; not from
 * a callback. */
void rocegw_memory_blocks_close(struct rocegw_memory_blocks* blocks);

/* result: bytes of the value, or a negative errno value: EIO, when the donors are lost. Called as
 * rocegw_memory_done is. */
typedef void (*rocegw_memory_blocks_done)(void* argument, int64_t result);

/* Start to put a value, of which the pool has 1 to block_bytes bytes, or to get one. A put replaces
 * the value of the key when it is complete; until then, and when it fails, gets see the older one.
 * The buffer belongs to the pool until `done` is called, once; the key does not. `done` is not
 * called when a call fails. EINVAL: the size of key or value. ENOENT (get): there is no such value.
 * EMSGSIZE (get): the value is larger than the buffer. EAGAIN: too many bytes are queued, or (put)
 * all blocks are in transfer. */
int rocegw_memory_blocks_put(struct rocegw_memory_blocks* blocks, const void* key, size_t key_size,
                             const void* value, size_t length, rocegw_memory_blocks_done done,
                             void* argument);
int rocegw_memory_blocks_get(struct rocegw_memory_blocks* blocks, const void* key, size_t key_size,
                             void* buffer, size_t size, rocegw_memory_blocks_done done,
                             void* argument);

/* The same, and wait for the result; EAGAIN is tried again. Not from a callback. */
int64_t rocegw_memory_blocks_put_wait(struct rocegw_memory_blocks* blocks, const void* key,
                                      size_t key_size, const void* value, size_t length);
int64_t rocegw_memory_blocks_get_wait(struct rocegw_memory_blocks* blocks, const void* key,
                                      size_t key_size, void* buffer, size_t size);

/* 1 when there is a value of the key, otherwise 0. */
int rocegw_memory_blocks_has(struct rocegw_memory_blocks* blocks, const void* key, size_t key_size);
/* Forgets the value. ENOENT: there is none. */
int rocegw_memory_blocks_remove(struct rocegw_memory_blocks* blocks, const void* key,
                                size_t key_size);

/* Grows at its end. Counts since the pool was opened, but for those that say "now". */
struct rocegw_memory_blocks_statistics {
  uint64_t blocks;       /* of the pool; of a shared one, at all live donors */
  uint64_t values;       /* now; 0 for a shared pool, whose donors count them */
  uint64_t hits, misses; /* gets that found a value, that did not */
  uint64_t puts;         /* that were complete */
  uint64_t evictions;    /* values that made room for others */
  uint64_t lost;         /* values that were forgotten because their donors are lost */
  uint64_t in_flight;    /* requests, now */
  /* Of shared pools. */
  uint64_t donors_up;          /* now */
  uint64_t donors_by_endpoint; /* of them, now */
  uint64_t donors_lost;        /* times that a donor was given up */
  uint64_t restored;           /* replicas that this process has made, of values of lost donors */
  uint64_t restoring;          /* 1 while it makes some, or looks whether some are lacking */
};
void rocegw_memory_blocks_get_statistics(struct rocegw_memory_blocks* blocks,
                                         struct rocegw_memory_blocks_statistics* statistics,
                                         size_t statistics_size);

#ifdef __cplusplus
}
#endif
