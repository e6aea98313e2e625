/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies where in shared memory: rings, their entries, indices and doorbells. Part of
 * rocegw_abi.h, which says what holds for all of it.
 */
#ifndef ROCEGW_ABI_RINGS_H
#define ROCEGW_ABI_RINGS_H

#include <stdint.h>

#ifdef __cplusplus
#define ROCEGW_STATIC_ASSERT(c, m) static_assert(c, m)
#else
#define ROCEGW_STATIC_ASSERT(c, m) _Static_assert(c, m)
#endif

/* A place in a chunk. Chunks are announced by ROCEGW_MSG_CHUNK before the reply that first names
 * them. */
struct rocegw_location {
  uint32_t chunk;
  uint32_t length; /* bytes */
  uint64_t offset;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_location) == 16, "rocegw_location");

/* Scatter/gather element, as struct ibv_sge. */
struct rocegw_sge {
  uint64_t address;
  uint32_t length;
  uint32_t lkey;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_sge) == 16, "rocegw_sge");

enum rocegw_wqe_opcode { /* values of enum ibv_wr_opcode */
                         ROCEGW_WR_RDMA_WRITE = 0,
                         ROCEGW_WR_RDMA_WRITE_WITH_IMM = 1,
                         ROCEGW_WR_SEND = 2,
                         ROCEGW_WR_SEND_WITH_IMM = 3,
                         ROCEGW_WR_RDMA_READ = 4,
                         ROCEGW_WR_ATOMIC_CMP_AND_SWP = 5,
                         ROCEGW_WR_ATOMIC_FETCH_AND_ADD = 6,
                         ROCEGW_WR_LOCAL_INV = 7,
                         ROCEGW_WR_BIND_MW = 8,
                         ROCEGW_WR_SEND_WITH_INV = 9,
                         /* Since minor 10; of RC, on devices that have ROCEGW_DEVICE_PLACEMENT. */
                         ROCEGW_WR_FLUSH = 14,
                         ROCEGW_WR_ATOMIC_WRITE = 15,
                         /* Since minor 16; of RC and endpoints, towards gateways that have them.
                            The operand is u.rdma.compare_add; not looked at by LOAD. */
                         ROCEGW_WR_ATOMIC_SWAP = 16,
                         ROCEGW_WR_ATOMIC_LOAD = 17,
                         ROCEGW_WR_ATOMIC_STORE = 18,
                         ROCEGW_WR_ATOMIC_FETCH_AND = 19,
                         ROCEGW_WR_ATOMIC_FETCH_OR = 20,
                         ROCEGW_WR_ATOMIC_FETCH_XOR = 21,
                         ROCEGW_WR_ATOMIC_FETCH_SUB = 22,
};

enum rocegw_wqe_flags { /* low bits as enum ibv_send_flags */
                        ROCEGW_WQE_FENCE = 1,
                        ROCEGW_WQE_SIGNALED = 2,
                        ROCEGW_WQE_SOLICITED = 4,
                        /* The payload lies in the SQ's payload area, slot for slot; keys and
                           addresses in sge[] are not looked at. */
                        ROCEGW_WQE_INLINE = 8,
                        /* As INLINE, but the library copied by itself: keys in sge[] are still
                           checked. */
                        ROCEGW_WQE_COPIED = 256,
                        /* Execution order: neither is strong order, as in verbs. */
                        ROCEGW_WQE_ORDER_NONE = 512,
                        ROCEGW_WQE_ORDER_RELAXED = 1024,
                        /* It leaves when all before it are complete. */
                        ROCEGW_WQE_FENCE_ALL = 2048,
                        /* With strong order: it takes effect when all before it have, those of no
                           order too. */
                        ROCEGW_WQE_FENCE_TARGET = 4096,
                        /* Since minor 16; of an endpoint's SENDs and WRITEs of one frame: no answer
                           is wanted, and what is lost stays lost. It completes when it has left. */
                        ROCEGW_WQE_UNACKNOWLEDGED = 8192,
};

/* Address vector of a datagram, inside its WQE. */
struct rocegw_address_vector {
  uint8_t dgid[16];
  uint32_t flow_label;
  uint8_t sgid_index;
  uint8_t traffic_class;
  uint8_t hop_limit;
  uint8_t reserved;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_address_vector) == 24, "rocegw_address_vector");

/* Send queue entry: one slot of the SQ ring, sge[] right behind it. The message is the sum of the
 * SGEs' lengths, also when its bytes lie in the payload area (an INLINE request may then have one
 * SGE that only tells the length). */
struct rocegw_send_wqe {
  uint64_t wr_id;
  uint8_t opcode;
  uint8_t num_sge;
  uint16_t flags;
  uint32_t imm_or_rkey; /* immediate as the bytes of the wire; the key to invalidate; BIND_MW: the
                           key that the window gets */
  union {
    struct {
      uint64_t remote_address;
      uint64_t compare_add; /* FLUSH: bytes of the range */
      uint64_t swap;        /* FLUSH: as its FETH, placement type and selectivity level << 4 */
      uint32_t rkey;
      uint32_t peer; /* of an endpoint (since minor 12 of READs and atomics, too): handle of whom
                        it is for; XRC_SEND, of every opcode: number
                        of the shared receive queue there; else 0 */
    } rdma;
    struct { /* BIND_MW; since minor 6 */
      uint64_t address;
      uint64_t length;
      uint32_t lkey;   /* of the region */
      uint32_t window; /* R_Key that the window has until then */
      uint32_t access; /* enum ibv_access_flags */
      uint32_t reserved;
    } bind;
    struct {
      struct rocegw_address_vector av;
      uint32_t remote_qpn;
      uint32_t remote_qkey;
    } ud;
  } u;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_send_wqe) == 48, "rocegw_send_wqe");
/* Receive queue entry: 16 bytes, then sge[]. Slot = 16 + 16 * max_recv_sge, rounded up to a power
 * of two. */
struct rocegw_recv_wqe {
  uint64_t wr_id;
  uint32_t num_sge;
  uint32_t reserved;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_recv_wqe) == 16, "rocegw_recv_wqe");

/* Shared receive queue. Receives lie in slots as those of a queue pair (rocegw_recv_wqe, then
 * sge[]); a ring of as many entries, uint32_t each, tells the order in which they were posted, by
 * their slots. The client may use a slot again when it has polled the completion of its receive:
 * queue pairs complete them in any order, and none is held up by another one's. */
struct rocegw_srq_control {
  uint32_t producer; /* of the ring of slots; free running */
  uint8_t pad[60];
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_srq_control) == 64, "rocegw_srq_control");

enum rocegw_cqe_flags {
  ROCEGW_CQE_GRH = 1, /* as enum ibv_wc_flags */
  ROCEGW_CQE_WITH_IMM = 2,
  ROCEGW_CQE_WITH_INV = 8,
  /* The payload lies in the RQ's payload area at slot `ring_slot`; the library copies it to the
     receive's SGEs. */
  ROCEGW_CQE_PAYLOAD_IN_RING = 256,
  ROCEGW_CQE_SOLICITED = 512,
  ROCEGW_CQE_RECEIVE = 1024, /* completes a receive (else a send) */
  /* A receive of XRC: `qp_handle` is that of the shared receive queue. */
  ROCEGW_CQE_XRC = 2048,
  ROCEGW_CQE_IPV4 = 4096, /* with ROCEGW_CQE_GRH: the datagram came over IPv4 */
};

/* Completion. Valid when `sequence` is the consumer's index + 1 (load acquire); the rest was
 * written before. */
struct rocegw_cqe {
  uint64_t wr_id;
  uint64_t timestamp_ns; /* CLOCK_MONOTONIC */
  uint32_t qpn;
  uint32_t source_qpn;
  uint32_t byte_length;
  uint32_t imm_or_rkey;
  uint8_t status; /* enum ibv_wc_status */
  uint8_t opcode; /* enum ibv_wc_opcode */
  uint16_t flags;
  uint32_t vendor_error;
  uint32_t ring_slot; /* index of the WQE that completed, free running; of a shared receive queue:
                         its slot */
  uint32_t qp_handle;
  uint8_t reserved[12];
  uint32_t sequence;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_cqe) == 64, "rocegw_cqe");

/* Written by the client, one per QP. Producer indices are free running; slot = index & (entries -
 * 1). */
struct rocegw_qp_control {
  uint32_t sq_producer;
  uint8_t pad0[60];
  uint32_t rq_producer;
  uint8_t pad1[60];
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_qp_control) == 128, "rocegw_qp_control");

/* Written by the daemon, one per QP. */
struct rocegw_qp_status {
  uint32_t sq_released; /* send slots below are free, payload included; stored before their CQE */
  uint32_t rq_released;
  uint32_t rq_starved; /* not 0: ring the doorbell after posting a receive */
  uint32_t state;      /* enum ibv_qp_state */
  uint8_t pad[48];
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_qp_status) == 64, "rocegw_qp_status");

enum rocegw_cq_arm { ROCEGW_CQ_UNARMED = 0, ROCEGW_CQ_ARM_ANY = 1, ROCEGW_CQ_ARM_SOLICITED = 2 };

/* Written by the client, one per CQ; the daemon only ever exchanges `arm` for UNARMED, and
 * `sleeping` for 0. */
struct rocegw_cq_control {
  uint32_t arm;
  /* Since minor 3: not 0: who polls the queue may sleep here (futex, shared) until a completion is
   * there. Sleep: store 1, fence, look for completions, wait while it is 1, not for ever. */
  uint32_t sleeping;
  uint8_t pad[56];
  struct {
    uint32_t consumer; /* free running */
    uint8_t pad[60];
  } worker[];
};

/* Doorbells, written by the client (atomic or) and taken by one worker (exchange). Bit b of the
 * summary: leaf[b] may be non-zero. One bit of a leaf: that QP has new WQEs. Post: store index
 * (release), fence, set leaf bit, set summary bit, fence, read need_wakeup; when it is set write 1
 * to the worker's eventfd. A bit that stands already may be left alone. */
struct rocegw_doorbell_page {
  uint64_t summary;
  uint8_t pad[56];
  uint64_t leaf[64];
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_doorbell_page) == 576, "rocegw_doorbell_page");
#define ROCEGW_DOORBELL_BITS 4096u

/* Written by the daemon, one per (session, worker). */
struct rocegw_worker_line {
  uint32_t need_wakeup;
  uint8_t pad[60];
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_worker_line) == 64, "rocegw_worker_line");

/* Slot sizes: header and sge[], in whole lines for the SQ, a power of two for the RQ. */
static inline uint32_t rocegw_sq_stride(uint32_t max_sge) {
  return max_sge <= 1 ? 64u : (48u + 16u * max_sge + 63u) & ~63u;
}
static inline uint32_t rocegw_rq_stride(uint32_t max_sge) {
  uint32_t need = 16u + 16u * max_sge, stride = 32u;
  while (stride < need) stride <<= 1;
  return stride;
}

#endif /* ROCEGW_ABI_RINGS_H */
