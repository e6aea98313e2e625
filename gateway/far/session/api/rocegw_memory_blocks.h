/* SPDX-License-Identifier: Apache-2.0
 *
 * Block pool in remote memory: values of up to one block are put and got by key. It is a cache:
 * when all blocks are taken, the value that was not used for longest is evicted, and a value whose
 * donors are all lost is forgotten. The shape fits the key-value caches of inference servers: keys
 * are hashes, blocks are 16 KiB to 2 MiB, requests of a layer are started together and complete in
 * any order. The index is in this process; a pool is not shared with others.
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

enum { ROCEGW_MEMORY_MOST_KEY_BYTES = 64 };

struct rocegw_memory_session; /* rocegw_memory.h */
struct rocegw_memory_blocks;

/* Makes a pool of [offset, offset + size) of the session's space, which nothing else may use. The
 * size of a block is a multiple of 4096 bytes, at most 16 MiB; offset is a multiple of it. EINVAL:
 * one of them is not so, or not within the space. */
int rocegw_memory_blocks_open(struct rocegw_memory_session* session, uint64_t offset, uint64_t size,
                              uint64_t block_bytes, struct rocegw_memory_blocks** blocks);

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
  uint64_t blocks;       /* of the pool */
  uint64_t values;       /* now */
  uint64_t hits, misses; /* gets that found a value, that did not */
  uint64_t puts;         /* that were complete */
  uint64_t evictions;    /* values that made room for others */
  uint64_t lost;         /* values that were forgotten because their donors are lost */
  uint64_t in_flight;    /* requests, now */
};
void rocegw_memory_blocks_get_statistics(struct rocegw_memory_blocks* blocks,
                                         struct rocegw_memory_blocks_statistics* statistics,
                                         size_t statistics_size);

#ifdef __cplusplus
}
#endif
