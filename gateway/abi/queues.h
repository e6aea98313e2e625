/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages about completion queues, queue pairs and whom endpoints name, and records of events.
 * Part of rocegw_abi.h.
 */
#ifndef ROCEGW_ABI_QUEUES_H
#define ROCEGW_ABI_QUEUES_H

#include "gateway/abi/messages.h"

struct rocegw_create_cq {
  struct rocegw_request header;
  uint32_t context;
  uint32_t entries;
  uint32_t channel; /* 0 = none */
  uint32_t comp_vector;
  uint64_t cookie; /* comes back in completion events */
};
struct rocegw_cq_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t entries;      /* per worker ring, power of two */
  uint32_t worker_count; /* rings */
  uint32_t reserved;
  struct rocegw_location control; /* struct rocegw_cq_control with worker_count elements */
  struct rocegw_location rings;   /* worker w's ring at offset + w * entries * 64 */
};

/* The client does not look at the queue from its request to the answer. What it has not polled lies
 * in the new rings then, at its old indices. */
struct rocegw_resize_cq {
  struct rocegw_request header;
  uint32_t cq;
  uint32_t entries;
};
/* A completion event is sent for so many completions, or when the first of them has waited for the
 * period. 0: not for that reason; both 0: for each. */
struct rocegw_moderate_cq {
  struct rocegw_request header;
  uint32_t cq;
  uint16_t count;
  uint16_t period; /* microseconds */
};

/* Since minor 8. Programs of a pool that name the same file share a domain: its shared receive
 * queues, each of which is its maker's, and its XRC_RECV queue pairs, which live on as long as
 * somebody has them open. Without a file it is the session's own. Closing a domain that has
 * something of the session in it: EBUSY. */
enum rocegw_xrcd_flags {
  ROCEGW_XRCD_CREATE = 1,    /* it may be made; else EAGAIN when there is none */
  ROCEGW_XRCD_EXCLUSIVE = 2, /* EINVAL when there is one */
};
struct rocegw_open_xrcd {
  struct rocegw_request header;
  uint32_t context;
  uint32_t flags; /* enum rocegw_xrcd_flags */
  uint32_t named; /* not 0: by the file whose descriptor comes along */
  uint32_t reserved;
};

enum rocegw_qp_type {
  ROCEGW_QPT_RC = 2,
  ROCEGW_QPT_UC = 3,
  ROCEGW_QPT_UD = 4,
  ROCEGW_QPT_XRC_SEND = 9,
  /* Sends nothing and has no queues: what it receives is for a shared receive queue of its domain
     that the peer names. PD and CQs are 0. */
  ROCEGW_QPT_XRC_RECV = 10,
  ROCEGW_QPT_ENDPOINT = 255
}; /* as enum ibv_qp_type */
/* Who keeps the order that requests of a QP ask for. */
enum rocegw_service_mode {
  ROCEGW_SERVICE_BY_TARGET = 0,
  ROCEGW_SERVICE_BY_INITIATOR = 1,
  ROCEGW_SERVICE_BY_LOWER_LAYER = 2,
  ROCEGW_SERVICE_UNORDERED = 3,
};
struct rocegw_create_qp {
  struct rocegw_request header;
  uint32_t pd;
  uint32_t send_cq;
  uint32_t recv_cq;
  uint32_t type;
  uint32_t max_send_wr;
  uint32_t max_recv_wr;
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline;
  uint32_t signal_all;
  uint64_t cookie; /* comes back in async events */
  /* Since minor 1. */
  uint32_t service_mode;         /* enum rocegw_service_mode */
  uint32_t any_completion_order; /* not 0: completions need not come in the order of requests */
  uint32_t give_up_ms;           /* endpoint: for how long a message is tried; 0: 5000 */
  /* Since minor 2. */
  uint32_t srq;   /* shared receive queue that it takes receives from; 0: its own; of an endpoint
                     since minor 17 */
  uint32_t group; /* of endpoints, handle: that it joins; 0: none */
  /* Since minor 7. */
  uint32_t cm_id; /* RC, handle: it comes in INIT, as that id's connection wants it; 0: in RESET */
  /* Since minor 8. */
  uint32_t xrcd; /* XRC_RECV, handle: its domain; else 0 */
  /* Since minor 17. */
  uint32_t on_failure; /* endpoint: enum rocegw_ep_failure */
};
/* An XRC_RECV queue pair that anybody has made in the domain, as one's own: EINVAL when there is
 * none of that number. Since minor 8. */
struct rocegw_open_qp {
  struct rocegw_request header;
  uint32_t xrcd;
  uint32_t qpn;
  uint64_t cookie; /* comes back in async events */
};
struct rocegw_qp_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t qpn;
  uint32_t sq_entries; /* power of two; what was asked for and at least 1 */
  uint32_t rq_entries; /* 0: it has none of its own */
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline;
  uint32_t worker;
  struct rocegw_location control; /* struct rocegw_qp_control */
  struct rocegw_location status;  /* struct rocegw_qp_status, read-only */
  struct rocegw_location sq;
  struct rocegw_location sq_payload; /* slot i at i * payload_stride */
  struct rocegw_location rq;
  struct rocegw_location rq_payload; /* read-only; length 0: receives are placed by the daemon */
  uint32_t sq_payload_stride;        /* also the most that may be COPIED */
  uint32_t rq_payload_stride;
  struct rocegw_location doorbell; /* struct rocegw_doorbell_page */
  uint32_t doorbell_bit;           /* 0 .. 4095 in that page */
  uint32_t reserved;
};

struct rocegw_create_srq {
  struct rocegw_request header;
  uint32_t pd;
  uint32_t max_wr;
  uint32_t max_sge;
  uint32_t limit;  /* an event says when fewer receives are posted; 0: none does */
  uint64_t cookie; /* comes back in async events */
  /* Since minor 8. */
  uint32_t xrcd; /* handle; 0: a basic one, whose queue pairs name it */
  uint32_t cq;   /* with an xrcd: where its receives complete */
};
struct rocegw_srq_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t entries; /* slots: power of two; what was asked for and at least 1 */
  uint32_t max_sge;
  uint32_t payload_stride;
  struct rocegw_location control; /* struct rocegw_srq_control */
  struct rocegw_location order;   /* ring of slots */
  struct rocegw_location slots;
  struct rocegw_location payload; /* read-only; length 0: receives are placed by the daemon */
  uint32_t number;                /* with an xrcd, since minor 8: by which peers name it; 24 bits */
  uint32_t reserved;
};
enum rocegw_srq_mask {
  ROCEGW_SRQ_MAX_WR = 1,
  ROCEGW_SRQ_LIMIT = 2
}; /* as enum ibv_srq_attr_mask */
/* With MAX_WR (since minor 4) answered as CREATE_SRQ: slots and order may lie elsewhere, with what
 * they held; more slots are free ones behind the old, without payload areas. The client posts
 * nothing from its request to the answer, and has no more than that posted. */
struct rocegw_modify_srq {
  struct rocegw_request header;
  uint32_t srq;
  uint32_t mask;
  uint32_t limit;
  uint32_t max_wr;
};
struct rocegw_query_srq_reply {
  struct rocegw_reply header;
  uint32_t max_wr;
  uint32_t max_sge;
  uint32_t limit; /* 0: not armed */
  uint32_t reserved;
};

/* As struct ibv_qp_attr, fixed widths; attr_mask has the bits of enum ibv_qp_attr_mask. */
struct rocegw_qp_attr {
  uint32_t qp_state;
  uint32_t cur_qp_state;
  uint32_t path_mtu;
  uint32_t qkey;
  uint32_t rq_psn;
  uint32_t sq_psn;
  uint32_t dest_qpn;
  uint32_t access_flags;
  struct rocegw_address_vector av;
  uint16_t pkey_index;
  uint8_t sq_draining;
  uint8_t max_rd_atomic;
  uint8_t max_dest_rd_atomic;
  uint8_t min_rnr_timer;
  uint8_t port_num;
  uint8_t timeout;
  uint8_t retry_cnt;
  uint8_t rnr_retry;
  uint8_t service_level;
  uint8_t en_sqd_async_notify;
  uint32_t rate_limit;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_qp_attr) == 72, "rocegw_qp_attr");
struct rocegw_modify_qp {
  struct rocegw_request header;
  uint32_t qp;
  uint32_t attr_mask;
  struct rocegw_qp_attr attr;
};
/* Enhanced connection establishment of a QP: options of the gateway's own vendor ID. */
struct rocegw_set_ece {
  struct rocegw_request header;
  uint32_t qp;
  uint32_t vendor_id;
  uint32_t options;
  uint32_t reserved;
};
struct rocegw_ece_reply {
  struct rocegw_reply header;
  uint32_t vendor_id;
  uint32_t options; /* offered; after SET_ECE those of them that hold */
};
struct rocegw_query_qp_reply {
  struct rocegw_reply header;
  struct rocegw_qp_attr attr;
  uint32_t max_send_wr;
  uint32_t max_recv_wr;
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline;
  uint32_t path; /* enum rocegw_qp_path; 0 before minor 1 */
  /* Since minor 16: not 0: the peer takes ROCEGW_WR_ATOMIC_SWAP and those behind it. */
  uint32_t fetch_operate;
  uint32_t reserved;
};
/* A datagram QP gets what is sent to the group, and no longer. A QP is not destroyed before
 * (EBUSY). Attaching twice is attaching once. */
struct rocegw_multicast {
  struct rocegw_request header;
  uint32_t qp;
  uint32_t reserved;
  uint8_t group[16]; /* an IPv6 group, or an IPv4 group as ::ffff:a.b.c.d */
};
/* An endpoint behind another gateway that work requests of endpoints name. */
struct rocegw_create_peer {
  struct rocegw_request header;
  uint32_t pd;
  uint32_t qpn;
  uint32_t key; /* Q_Key of that endpoint */
  uint32_t reserved;
  struct rocegw_address_vector av;
};
/* Endpoints of this session that others address as one. */
enum rocegw_dispatch {
  ROCEGW_DISPATCH_HASH = 0,        /* each sender has one of them */
  ROCEGW_DISPATCH_ROUND_ROBIN = 1, /* one after the other */
  ROCEGW_DISPATCH_DEPTH = 2,       /* that with most receives posted */
};
struct rocegw_create_group {
  struct rocegw_request header;
  uint32_t pd; /* also of its members */
  uint32_t key;
  uint32_t dispatch; /* enum rocegw_dispatch */
  /* Since minor 17: handle of a shared receive queue that members can take receives from; 0: any */
  uint32_t srq;
};
struct rocegw_group_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t number; /* as that of a QP */
};
/* States of an endpoint. Since minor 17. */
enum rocegw_ep_state {
  ROCEGW_EP_RESET = 0,     /* it is not ready: brought there by MODIFY_QP */
  ROCEGW_EP_READY = 1,     /* it sends and receives */
  ROCEGW_EP_SUSPENDED = 2, /* it begins no request; those under way end */
  ROCEGW_EP_DRAINING = 3,  /* it takes no new message; those under way end */
  ROCEGW_EP_EXCEPTION = 4, /* a request has failed: as SUSPENDED */
  ROCEGW_EP_ERROR = 5,     /* everything posted completes as flushed */
};
/* What a failed request of an endpoint does to it. */
enum rocegw_ep_failure {
  ROCEGW_EP_CONTINUE = 0, /* nothing: requests are independent */
  ROCEGW_EP_SUSPEND = 1,  /* it goes into EXCEPTION */
};
/* Answered with an object reply. EINVAL: the state is none to ask for (RESET, EXCEPTION), or the
 * endpoint is not ready or in error. */
struct rocegw_modify_ep {
  struct rocegw_request header;
  uint32_t qp;
  uint32_t state;  /* enum rocegw_ep_state */
  uint32_t notify; /* not 0: SQ_DRAINED is raised once, when what is under way has ended */
  uint32_t reserved;
};
/* The request is a rocegw_object_request. */
struct rocegw_query_ep_reply {
  struct rocegw_reply header;
  uint32_t state;      /* enum rocegw_ep_state */
  uint32_t on_failure; /* enum rocegw_ep_failure */
  uint32_t requests;   /* own, begun and not complete */
  uint32_t messages;   /* of others, begun or not answered yet */
  uint64_t failures;   /* own requests that have failed; flushed ones do not count */
};
/* How the requests of a QP leave. */
enum rocegw_qp_path {
  ROCEGW_PATH_NONE = 0,      /* it is not connected */
  ROCEGW_PATH_NATIVE = 1,    /* as plain RoCEv2: in order */
  ROCEGW_PATH_CHANNEL = 2,   /* by a channel whose other end keeps the order of verbs only */
  ROCEGW_PATH_ANY_ORDER = 3, /* by a channel, in the order that they ask for */
};

/* Records on event descriptors (SOCK_SEQPACKET, one event per record). */
struct rocegw_completion_event {
  uint64_t cookie; /* of the CQ */
  uint32_t cq;
  uint32_t reserved;
};
enum rocegw_object_kind {
  ROCEGW_OBJECT_DEVICE = 0,
  ROCEGW_OBJECT_QP = 1,
  ROCEGW_OBJECT_CQ = 2,
  ROCEGW_OBJECT_PORT = 3,
  ROCEGW_OBJECT_SRQ = 4
};
struct rocegw_async_event {
  uint64_t cookie; /* of the object */
  uint32_t type;   /* enum ibv_event_type */
  uint32_t kind;   /* enum rocegw_object_kind */
  uint32_t handle;
  uint32_t reserved;
};

#endif /* ROCEGW_ABI_QUEUES_H */
