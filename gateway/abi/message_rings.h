/* SPDX-License-Identifier: Apache-2.0
 *
 * Rings that carry messages between client and daemon in place of the attach socket. Part of
 * rocegw_abi.h; docs/develop/abi.md#message-rings explains the protocol.
 */
#ifndef ROCEGW_ABI_MESSAGE_RINGS_H
#define ROCEGW_ABI_MESSAGE_RINGS_H

#include "gateway/abi/messages.h"

#define ROCEGW_RING_SLOTS 64u        /* of each direction */
#define ROCEGW_RING_MESSAGE_MAX 504u /* longer messages go over the socket */
#define ROCEGW_RING_CLOSED 0x80000000u
#define ROCEGW_RING_COUNT 0x7fffffffu

struct rocegw_ring_slot {
  uint32_t length; /* of the message, bytes */
  uint32_t reserved;
  uint8_t message[ROCEGW_RING_MESSAGE_MAX]; /* as on the socket */
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_ring_slot) == 512, "rocegw_ring_slot");

/* Counts run freely; a message's slot is its count modulo ROCEGW_RING_SLOTS. The counts of messages
 * on the socket begin with 0 behind the request USE_RINGS and behind its answer. */
struct rocegw_message_rings {
  /* Requests put into the ring (ROCEGW_RING_COUNT), and ROCEGW_RING_CLOSED: the daemon takes no
   * more. One word, so that a request is in the ring before the daemon closes it, or not at all. */
  uint32_t requests;
  uint32_t pad0[15];
  /* Written by the client. */
  uint32_t answers_taken;
  uint32_t socket_answers_taken;
  uint32_t pad1[14];
  /* Written by the daemon, but for daemon_awake: a client that puts a request into the ring of a
   * daemon that sleeps (0) sets 1, and writes to the daemon's eventfd if it was the one that did.
   */
  uint32_t requests_taken;
  uint32_t socket_requests_taken;
  uint32_t daemon_awake;
  uint32_t pad2[13];
  uint32_t answers;
  uint32_t socket_answers;
  uint32_t pad3[14];
  /* Futexes of waiting threads: that of a request is its number modulo ROCEGW_RING_SLOTS. A thread
   * sets 1 before it sleeps there; who has its answer for it sets 0, and wakes it if it was 1. */
  uint32_t waits[ROCEGW_RING_SLOTS];
  struct rocegw_ring_slot request[ROCEGW_RING_SLOTS]; /* written by the client */
  struct rocegw_ring_slot answer[ROCEGW_RING_SLOTS];  /* written by the daemon */
};

/* The answer to USE_RINGS; its descriptor is the memory. RINGS_WAKE comes before it. */
struct rocegw_rings_reply {
  struct rocegw_reply header;
  uint32_t bytes; /* size of the memory */
  uint32_t reserved;
};

#endif /* ROCEGW_ABI_MESSAGE_RINGS_H */
