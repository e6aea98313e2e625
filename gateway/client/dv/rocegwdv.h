/* SPDX-License-Identifier: Apache-2.0
 *
 * What rocegw devices offer beyond libibverbs: order only where it is asked for. The four axes are
 * those of Unified Bus: who keeps the order of requests (service mode), when a request may take
 * effect at the target (execution order), what it waits for before it leaves (fence), and in which
 * order completions come (completion order). docs/user/ordering.md explains them,
 * docs/reference/man has a page for each call.
 *
 * Everything here is exported by librocegw-verbs.so; any thread may call it, as the calls of
 * libibverbs. Structures grow at their end only: a call takes the size that its caller knows, and
 * fields that are new are 0 for those who do not. A comp_mask must be 0 until a bit is defined.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rocegwdv_service_mode {
  ROCEGWDV_SERVICE_BY_TARGET = 0,    /* the receiver keeps order; as verbs */
  ROCEGWDV_SERVICE_BY_INITIATOR = 1, /* the sender holds a request back until it may be executed */
  ROCEGWDV_SERVICE_BY_LOWER_LAYER =
      2,                          /* what carries requests; where that has no order, the target */
  ROCEGWDV_SERVICE_UNORDERED = 3, /* nobody: every request is of order NONE */
  /* Of endpoints: as UNORDERED, and without answers: a SEND or WRITE of one frame completes when it
   * has left, and arrives once or not at all. */
  ROCEGWDV_SERVICE_UNACKNOWLEDGED = 4,
};

enum rocegwdv_execution_order {
  ROCEGWDV_ORDER_DEFAULT = 0, /* that of the queue pair */
  ROCEGWDV_ORDER_NONE = 1,    /* takes effect when it is there; nobody waits for it */
  ROCEGWDV_ORDER_RELAXED = 2, /* takes effect when it is there; STRONG ones behind it wait for it */
  ROCEGWDV_ORDER_STRONG =
      3, /* takes effect after all RELAXED and STRONG ones before it; as verbs */
};

/* Bits. */
enum rocegwdv_fence {
  ROCEGWDV_FENCE_READS =
      1,                  /* leaves when READs and atomics before it are complete; IBV_SEND_FENCE */
  ROCEGWDV_FENCE_ALL = 2, /* leaves when everything before it is complete */
  ROCEGWDV_FENCE_TARGET =
      4, /* leaves at once, takes effect when everything before it has, NONE too */
};

enum rocegwdv_completion_order {
  ROCEGWDV_COMPLETION_IN_ORDER = 0, /* as verbs */
  ROCEGWDV_COMPLETION_ANY = 1,      /* as they come, of sends and receives */
};

/* Values of ibv_send_wr.opcode for atomics on eight bytes beyond those of libibverbs, towards
 * gateways that have them. wr.atomic.compare_add is the operand; LOAD looks at none. Each brings
 * the value before the operation, needs IBV_ACCESS_REMOTE_ATOMIC, and completes with
 * IBV_WC_FETCH_ADD. */
enum rocegwdv_wr_opcode {
  ROCEGWDV_WR_ATOMIC_SWAP = 16,
  ROCEGWDV_WR_ATOMIC_LOAD = 17,
  ROCEGWDV_WR_ATOMIC_STORE = 18,
  ROCEGWDV_WR_ATOMIC_FETCH_AND = 19,
  ROCEGWDV_WR_ATOMIC_FETCH_OR = 20,
  ROCEGWDV_WR_ATOMIC_FETCH_XOR = 21,
  ROCEGWDV_WR_ATOMIC_FETCH_SUB = 22,
};

/* How requests leave, and so what becomes of their orders. */
enum rocegwdv_path {
  ROCEGWDV_PATH_NONE = 0,      /* not connected */
  ROCEGWDV_PATH_NATIVE = 1,    /* plain RoCEv2: everything is of order STRONG */
  ROCEGWDV_PATH_CHANNEL = 2,   /* between gateways, to one that knows no order but STRONG */
  ROCEGWDV_PATH_ANY_ORDER = 3, /* between gateways, as asked */
};

struct rocegwdv_device_attr {
  uint64_t comp_mask;
  uint32_t service_modes;     /* bit 1 << enum rocegwdv_service_mode */
  uint32_t execution_orders;  /* bit 1 << enum rocegwdv_execution_order */
  uint32_t fences;            /* enum rocegwdv_fence */
  uint32_t completion_orders; /* bit 1 << enum rocegwdv_completion_order */
  uint32_t ep_operations;     /* of endpoints: bit 1 << enum ibv_wr_opcode or rocegwdv_wr_opcode */
  uint32_t qp_operations;     /* of connected queue pairs: bit 1 << enum rocegwdv_wr_opcode */
};

struct rocegwdv_qp_init_attr {
  uint64_t comp_mask;
  uint32_t service_mode;
  uint32_t execution_order; /* of requests that do not say; DEFAULT is STRONG, or NONE in mode
                               UNORDERED */
  uint32_t completion_order;
  uint32_t reserved; /* 0 */
};

struct rocegwdv_qp_attr {
  uint64_t comp_mask;
  uint32_t service_mode;
  uint32_t execution_order;
  uint32_t completion_order;
  uint32_t path;       /* enum rocegwdv_path */
  uint32_t operations; /* that the peer takes: bit 1 << enum rocegwdv_wr_opcode */
  uint32_t reserved;   /* 0 */
};

/* Whom a request of an endpoint is for: an endpoint behind another gateway. */
struct rocegwdv_peer;

struct rocegwdv_send_wr {
  struct rocegwdv_send_wr *next;
  uint64_t comp_mask;
  struct ibv_send_wr wr; /* wr.next is not looked at */
  uint32_t execution_order;
  uint32_t fence;             /* bits; IBV_SEND_FENCE in wr.send_flags counts, too */
  struct rocegwdv_peer *peer; /* of an endpoint's request; else NULL */
};

/* Is this a device with the calls below? */
bool rocegwdv_is_supported(struct ibv_device *device);

/* 0 or an errno value. */
int rocegwdv_query_device(struct ibv_context *context, struct rocegwdv_device_attr *attr,
                          size_t size);

/* A connected queue pair (IBV_QPT_RC); all other calls are those of libibverbs. NULL and errno. */
struct ibv_qp *rocegwdv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
                                  const struct rocegwdv_qp_init_attr *dv_attr, size_t size);

/* 0 or an errno value. */
int rocegwdv_query_qp(struct ibv_qp *qp, struct rocegwdv_qp_attr *attr, size_t size);

/* As ibv_post_send: 0, or an errno value and the first request that was not posted. EOPNOTSUPP: the
 * daemon is older than what is asked for. */
int rocegwdv_post_send(struct ibv_qp *qp, struct rocegwdv_send_wr *wr,
                       struct rocegwdv_send_wr **bad_wr);

/* ---- endpoints ---- */

/* To which of a group's endpoints a message goes. */
enum rocegwdv_dispatch {
  ROCEGWDV_DISPATCH_HASH = 0,        /* by its sender: each has one, as long as nobody joins or
                                        leaves */
  ROCEGWDV_DISPATCH_ROUND_ROBIN = 1, /* one after the other */
  ROCEGWDV_DISPATCH_DEPTH = 2,       /* to that with most receives posted */
};

struct rocegwdv_group_init_attr {
  uint64_t comp_mask;
  uint32_t key;        /* what peers must name */
  uint32_t dispatch;   /* enum rocegwdv_dispatch */
  struct ibv_srq *srq; /* members can take receives from it; NULL: each from its own queue only */
};

/* Endpoints that peers address as one, each with its own queues. */
struct rocegwdv_group {
  struct ibv_context *context;
  uint32_t group_num; /* ep_num for peers */
  uint32_t handle;    /* the library's */
};

struct rocegwdv_ep_init_attr {
  uint64_t comp_mask;
  void *context; /* qp_context of the endpoint */
  struct ibv_cq *send_cq;
  struct ibv_cq *recv_cq;
  struct ibv_qp_cap cap;
  uint32_t sq_sig_all;
  uint32_t key;              /* what peers must name */
  uint32_t service_mode;     /* BY_INITIATOR, UNORDERED or UNACKNOWLEDGED */
  uint32_t execution_order;  /* of requests that do not say */
  uint32_t completion_order; /* of sends; receives complete as messages come */
  uint32_t timeout_ms;       /* after that long without an answer a message has failed; 0: 5000 */
  struct rocegwdv_group *group; /* that it is a member of until it ends; NULL: none */
  struct ibv_srq *srq;          /* that it takes receives from; NULL: its own queue */
  uint32_t on_failure;          /* enum rocegwdv_ep_failure */
  uint32_t reserved;            /* 0 */
};

/* What a request that fails does to its endpoint. */
enum rocegwdv_ep_failure {
  ROCEGWDV_EP_CONTINUE = 0, /* nothing: it completes with its status */
  ROCEGWDV_EP_SUSPEND = 1,  /* also, the endpoint goes into the state EXCEPTION */
};

enum rocegwdv_ep_state {
  ROCEGWDV_EP_RESET = 0, /* not ready, since ibv_modify_qp has brought it to RESET, INIT or RTR */
  ROCEGWDV_EP_READY = 1, /* sends and receives */
  ROCEGWDV_EP_SUSPENDED = 2, /* begins no request; those under way end; receives */
  ROCEGWDV_EP_DRAINING = 3,  /* takes no new message; sends; what is under way ends */
  ROCEGWDV_EP_EXCEPTION = 4, /* as SUSPENDED, since a request has failed */
  ROCEGWDV_EP_ERROR = 5,     /* everything posted completes with IBV_WC_WR_FLUSH_ERR */
};

/* Bits. */
enum rocegwdv_modify_ep_flags {
  ROCEGWDV_EP_NOTIFY = 1, /* IBV_EVENT_SQ_DRAINED, once, when what is under way has ended */
};

struct rocegwdv_ep_attr {
  uint64_t comp_mask;
  uint32_t state;      /* enum rocegwdv_ep_state */
  uint32_t on_failure; /* enum rocegwdv_ep_failure */
  uint32_t requests;   /* own ones that have begun and are not complete */
  uint32_t messages;   /* of others that have begun, or are not answered yet */
  uint64_t failures;   /* own requests that have failed, without flushed ones */
};

struct rocegwdv_peer_attr {
  uint64_t comp_mask;
  union ibv_gid gid; /* address of the other gateway */
  uint32_t ep_num;   /* qp_num of the endpoint there */
  uint32_t key;
  uint32_t flow_label;
  uint8_t sgid_index;
  uint8_t traffic_class;
  uint16_t reserved; /* 0 */
};

/* An endpoint, ready to send and receive. It is a queue pair of type IBV_QPT_DRIVER: receives are
 * posted with ibv_post_recv, it ends with ibv_destroy_qp. NULL and errno. */
struct ibv_qp *rocegwdv_create_ep(struct ibv_pd *pd, struct rocegwdv_ep_init_attr *attr,
                                  size_t size);

/* Changes the state to READY, SUSPENDED, DRAINING or ERROR. 0 or an errno value; EINVAL: another
 * state, or the endpoint is in RESET or ERROR. An endpoint goes into EXCEPTION by itself, which
 * IBV_EVENT_QP_REQ_ERR reports, and IBV_EVENT_SQ_DRAINED when what was under way has ended. */
int rocegwdv_modify_ep(struct ibv_qp *ep, uint32_t state, uint32_t flags);

/* 0 or an errno value. */
int rocegwdv_query_ep(struct ibv_qp *ep, struct rocegwdv_ep_attr *attr, size_t size);

/* A group without members; endpoints join it when they are made. NULL and errno. */
struct rocegwdv_group *rocegwdv_create_group(struct ibv_pd *pd,
                                             const struct rocegwdv_group_init_attr *attr,
                                             size_t size);

/* 0 or an errno value; EBUSY: it has members. */
int rocegwdv_destroy_group(struct rocegwdv_group *group);

/* NULL and errno. */
struct rocegwdv_peer *rocegwdv_create_peer(struct ibv_pd *pd, const struct rocegwdv_peer_attr *attr,
                                           size_t size);

/* 0 or an errno value. */
int rocegwdv_destroy_peer(struct rocegwdv_peer *peer);

#ifdef __cplusplus
}
#endif
