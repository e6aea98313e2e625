/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract between rocegwd and librocegw-verbs: messages on the attach socket and the layout of
 * shared memory. C11 and stdint only, explicit sizes, host byte order (both ends are one host),
 * offsets and handles, never pointers. Its parts by topic are included below; docs/develop/abi.md
 * explains it; tests/unit/abi holds its sizes as goldens.
 *
 * Compatibility: one major version is one layout. Inside a major, messages may only grow at their
 * end: a receiver takes min(its size, received size) and treats what is missing as zero; a request
 * that the daemon does not know is answered with ENOSYS. So an older library works with a newer
 * daemon and the reverse.
 *
 * Trust: the daemon believes nothing that it reads here. What the client may write is copied out
 * once, checked, then used; what the daemon writes lies in chunks that the client maps read-only.
 */
#ifndef ROCEGW_ABI_H
#define ROCEGW_ABI_H

#include "gateway/abi/connections.h"
#include "gateway/abi/memory.h"
#include "gateway/abi/message_rings.h"
#include "gateway/abi/messages.h"
#include "gateway/abi/queues.h"
#include "gateway/abi/rings.h"

#define ROCEGW_ABI_MAGIC 0x57474352u /* "RCGW" */
#define ROCEGW_ABI_MAJOR 1u
/* 1: ordering on request; 2: shared receive queues; 3: pollers sleep; 4: queues that change their
 * size, moderation of completion events; 5: multicast; 6: memory windows, SENDs with invalidation;
 * 7: queue pairs go along with their connection; 8: XRC; 9: steps of a connection that fail without
 * an answer fail as events; 10: memory placement extensions; 11: regions change under their keys;
 * 13: address handles are counted; 14: unread events move with their id;
 * 15: dma-bufs, memory of GPUs; 16: further atomics; 17: states and shared receive queues of
 * endpoints; 18: messages in rings */
#define ROCEGW_ABI_MINOR 18u
#define ROCEGW_ATTACH_SOCKET "/run/rocegw/attach.sock"
#define ROCEGW_CACHE_LINE 64u

#endif /* ROCEGW_ABI_H */
