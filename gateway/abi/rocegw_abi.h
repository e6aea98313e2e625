/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract between rocegwd and librocegw-verbs: messages on the attach socket and the layout of
 * shared memory. C11 and stdint only, explicit sizes, host byte order (both ends are one host),
 * offsets and handles, never pointers. docs/abi.md explains it; tests/unit/abi holds its sizes as
 * goldens.
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

#include <stdint.h>

#ifdef __cplusplus
#define ROCEGW_STATIC_ASSERT(c, m) static_assert(c, m)
extern "C" {
#else
#define ROCEGW_STATIC_ASSERT(c, m) _Static_assert(c, m)
#endif

#define ROCEGW_ABI_MAGIC 0x57474352u /* "RCGW" */
#define ROCEGW_ABI_MAJOR 1u
#define ROCEGW_ABI_MINOR 1u /* 1: ordering on request */
#define ROCEGW_ATTACH_SOCKET "/run/rocegw/attach.sock"
#define ROCEGW_CACHE_LINE 64u

/* ---- shared memory ---- */

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
  uint32_t imm_or_rkey; /* immediate as the bytes of the wire, or the key to invalidate */
  union {
    struct {
      uint64_t remote_address;
      uint64_t compare_add;
      uint64_t swap;
      uint32_t rkey;
      uint32_t peer; /* of an endpoint: handle of whom it is for; else 0 */
    } rdma;
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

enum rocegw_cqe_flags {
  ROCEGW_CQE_GRH = 1, /* as enum ibv_wc_flags */
  ROCEGW_CQE_WITH_IMM = 2,
  ROCEGW_CQE_WITH_INV = 8,
  /* The payload lies in the RQ's payload area at slot `ring_slot`; the library copies it to the
     receive's SGEs. */
  ROCEGW_CQE_PAYLOAD_IN_RING = 256,
  ROCEGW_CQE_SOLICITED = 512,
  ROCEGW_CQE_RECEIVE = 1024, /* completes a receive (else a send) */
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
  uint32_t ring_slot; /* index of the WQE that completed, free running */
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

/* Written by the client, one per CQ; the daemon only ever exchanges `arm` for UNARMED. */
struct rocegw_cq_control {
  uint32_t arm;
  uint8_t pad[60];
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

/* ---- messages ---- */

/* SOCK_SEQPACKET: one message per record, at most one descriptor (SCM_RIGHTS) each. A request is a
 * header and a body of its type; the reply repeats type and request_id. Requests of one connection
 * are answered in order. */
struct rocegw_request {
  uint32_t type;
  uint32_t length; /* header and body, bytes */
  uint64_t request_id;
};
struct rocegw_reply {
  uint32_t type;
  uint32_t length;
  uint64_t request_id;
  int32_t error; /* errno, 0 = done; the body is there only then */
  uint32_t reserved;
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_request) == 16, "rocegw_request");
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_reply) == 24, "rocegw_reply");
#define ROCEGW_MESSAGE_MAX 4096u

enum rocegw_message {
  /* Client to daemon; the reply has the same type. */
  ROCEGW_MSG_HELLO = 1, /* first message; descriptor: /proc/self/mem of the client, opened
                           read-write (may be absent) */
  ROCEGW_MSG_QUERY_DEVICE = 2,
  ROCEGW_MSG_QUERY_GIDS = 3,
  ROCEGW_MSG_OPEN_CONTEXT = 4, /* reply descriptor: async events */
  ROCEGW_MSG_CLOSE_CONTEXT = 5,
  ROCEGW_MSG_ALLOC_PD = 6,
  ROCEGW_MSG_DEALLOC_PD = 7,
  ROCEGW_MSG_REG_MR = 8,
  ROCEGW_MSG_DEREG_MR = 9,
  ROCEGW_MSG_CREATE_CHANNEL = 10, /* completion channel; reply descriptor: its events */
  ROCEGW_MSG_DESTROY_CHANNEL = 11,
  ROCEGW_MSG_CREATE_CQ = 12,
  ROCEGW_MSG_DESTROY_CQ = 13,
  ROCEGW_MSG_CREATE_QP = 14,
  ROCEGW_MSG_MODIFY_QP = 15,
  ROCEGW_MSG_QUERY_QP = 16,
  ROCEGW_MSG_DESTROY_QP = 17,
  ROCEGW_MSG_CREATE_REGION = 18, /* reply descriptor: memfd for pages that move (remapping) */
  ROCEGW_MSG_DESTROY_REGION = 19,
  ROCEGW_MSG_SET_MEMORY = 20, /* descriptor: /proc/self/mem anew, e.g. after exec of a new image */
  ROCEGW_MSG_QUERY_ECE = 21,
  ROCEGW_MSG_SET_ECE = 22, /* answered as QUERY_ECE */
  ROCEGW_MSG_CREATE_PEER = 23,
  ROCEGW_MSG_DESTROY_PEER = 24,

  ROCEGW_MSG_CM_CREATE_CHANNEL = 64, /* reply descriptor: CM events */
  ROCEGW_MSG_CM_DESTROY_CHANNEL = 65,
  ROCEGW_MSG_CM_CREATE_ID = 66,
  ROCEGW_MSG_CM_DESTROY_ID = 67,
  ROCEGW_MSG_CM_BIND = 68,
  ROCEGW_MSG_CM_RESOLVE_ADDR = 69,
  ROCEGW_MSG_CM_RESOLVE_ROUTE = 70,
  ROCEGW_MSG_CM_LISTEN = 71,
  ROCEGW_MSG_CM_CONNECT = 72,
  ROCEGW_MSG_CM_ACCEPT = 73,
  ROCEGW_MSG_CM_REJECT = 74,
  ROCEGW_MSG_CM_ESTABLISH = 75,
  ROCEGW_MSG_CM_DISCONNECT = 76,
  ROCEGW_MSG_CM_INIT_QP_ATTR = 77,
  ROCEGW_MSG_CM_SET_OPTION = 78,
  ROCEGW_MSG_CM_MIGRATE = 79,
  ROCEGW_MSG_CM_NOTIFY = 80,
  ROCEGW_MSG_CM_QUERY_ID = 81,

  /* Daemon to client, unasked; they come before the reply that needs them. */
  ROCEGW_MSG_CHUNK = 128,  /* descriptor: memfd of the chunk */
  ROCEGW_MSG_WORKER = 129, /* descriptor: eventfd that wakes the worker */
};

struct rocegw_hello {
  struct rocegw_request header;
  uint32_t magic;
  uint32_t major;
  uint32_t minor;
  uint32_t flags;
};
enum rocegw_welcome_flags {
  ROCEGW_WELCOME_REMAP = 1, /* the pool allows remapping; the reply's descriptor is /dev/userfaultfd
                               where there is one */
};
struct rocegw_hello_reply {
  struct rocegw_reply header;
  uint32_t major;
  uint32_t minor;
  uint32_t session;
  uint32_t worker_count;
  uint32_t device_count;
  uint32_t flags;
  char sysfs_root[96]; /* the daemon's tree with the shape of /sys, "" when there is none */
};

struct rocegw_chunk_announcement {
  struct rocegw_reply header;
  uint32_t chunk;
  uint32_t read_only; /* map PROT_READ only */
  uint64_t size;
};
struct rocegw_worker_announcement {
  struct rocegw_reply header;
  uint32_t worker;
  uint32_t reserved;
  struct rocegw_location line; /* struct rocegw_worker_line */
};

struct rocegw_query_device {
  struct rocegw_request header;
  uint32_t device; /* 0 .. device_count - 1 */
  uint32_t reserved;
};
struct rocegw_device_reply {
  struct rocegw_reply header;
  char name[64];      /* "rocegw0" */
  char interface[16]; /* netdev; "" when the port has none */
  char firmware[64];  /* version of the daemon */
  uint64_t node_guid; /* network order */
  uint64_t max_mr_size;
  uint32_t interface_index;
  uint32_t vendor_id;
  uint32_t vendor_part_id;
  uint32_t hardware_version;
  uint32_t max_qp;
  uint32_t max_qp_wr;
  uint32_t max_sge;
  uint32_t max_inline;
  uint32_t max_cq;
  uint32_t max_cqe;
  uint32_t max_mr;
  uint32_t max_pd;
  uint32_t max_ah;
  uint32_t max_srq;
  uint32_t max_srq_wr;
  uint32_t max_srq_sge;
  uint32_t max_rd_atomic; /* both directions */
  uint32_t max_message;
  uint8_t port_state; /* enum ibv_port_state */
  uint8_t max_mtu;    /* enum ibv_mtu */
  uint8_t active_mtu;
  uint8_t local_ack_delay;
  uint8_t active_width;
  uint8_t active_speed;
  uint16_t gid_table_length;
};

struct rocegw_query_gids {
  struct rocegw_request header;
  uint32_t device;
  uint32_t first; /* index */
};
struct rocegw_gid_entry {
  uint8_t gid[16];
  uint32_t index;
  uint32_t interface_index;
};
#define ROCEGW_GIDS_PER_REPLY 64u
struct rocegw_gids_reply {
  struct rocegw_reply header;
  uint32_t count; /* entries that follow; only used indices are listed, ascending */
  uint32_t more;  /* not 0: ask again from the last index + 1 */
  struct rocegw_gid_entry entry[ROCEGW_GIDS_PER_REPLY];
};

struct rocegw_open_context {
  struct rocegw_request header;
  uint32_t device;
  uint32_t reserved;
};
/* Used by every request that names one object, and by every reply that makes one. */
struct rocegw_object_request {
  struct rocegw_request header;
  uint32_t handle;
  uint32_t reserved;
};
struct rocegw_object_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t events_reported; /* destroy: records ever put on the object's event channel; wait until
                               they are acked */
};

struct rocegw_alloc_pd {
  struct rocegw_request header;
  uint32_t context;
  uint32_t reserved;
};

struct rocegw_reg_mr {
  struct rocegw_request header;
  uint32_t pd;
  uint32_t access; /* enum ibv_access_flags */
  uint64_t address;
  uint64_t length;
  uint64_t iova;   /* the address that peers and lkey users name */
  uint32_t region; /* remapped region that holds some of the range, 0 = none; the rest of it (pages
                      that the range has only a part of) is reached as without a region */
  uint32_t kept;   /* region 0: enum rocegw_kept, for people who look at it */
  uint64_t region_offset; /* of `address` in the region; wraps when the region begins later */
};

/* Why the library left memory where it is. */
enum rocegw_kept {
  ROCEGW_KEPT_UNSAID = 0,
  ROCEGW_KEPT_POOL = 1,
  ROCEGW_KEPT_PROCESS = 2,
  ROCEGW_KEPT_SMALL = 3,
  ROCEGW_KEPT_MAPPING = 4,
  ROCEGW_KEPT_STACK = 5,
  ROCEGW_KEPT_ADVISED = 6,
  ROCEGW_KEPT_DEVICES = 7,
  ROCEGW_KEPT_IN_USE = 8,
  ROCEGW_KEPT_SHORT_LIVED = 9,
  ROCEGW_KEPT_LARGE_PROCESS = 10,
  ROCEGW_KEPT_FILE_LIMIT = 11,
  ROCEGW_KEPT_NO_USERFAULTFD = 12,
  ROCEGW_KEPT_REFUSED = 13,
  ROCEGW_KEPT_FAILED = 14,
  ROCEGW_KEPT_COUNT = 15
};
static inline const char* rocegw_kept_text(uint32_t kept) {
  switch (kept) {
    case ROCEGW_KEPT_POOL:
      return "its pool does not allow remapping";
    case ROCEGW_KEPT_PROCESS:
      return "its process says ROCEGW_REMAP=never";
    case ROCEGW_KEPT_SMALL:
      return "it is smaller than what is worth moving";
    case ROCEGW_KEPT_MAPPING:
      return "it is not private, anonymous, writable memory of ordinary pages";
    case ROCEGW_KEPT_STACK:
      return "it may be part of a stack";
    case ROCEGW_KEPT_ADVISED:
      return "its mapping has properties that would be lost (locked, huge pages, not for children "
             "or "
             "core dumps, protection key, memory policy)";
    case ROCEGW_KEPT_DEVICES:
      return "its process has a device or an io_uring open that may hold the pages";
    case ROCEGW_KEPT_IN_USE:
      return "another registration of its process holds some of these pages";
    case ROCEGW_KEPT_SHORT_LIVED:
      return "registrations of its process do not last long enough";
    case ROCEGW_KEPT_LARGE_PROCESS:
      return "its process is too large to look up the properties of the mapping";
    case ROCEGW_KEPT_FILE_LIMIT:
      return "its process may not write files of that size";
    case ROCEGW_KEPT_NO_USERFAULTFD:
      return "its process may not have a full userfaultfd, or the kernel is older than 6.4";
    case ROCEGW_KEPT_REFUSED:
      return "the gateway refused a region (a limit, or strict memory accounting)";
    case ROCEGW_KEPT_FAILED:
      return "the kernel refused to move it";
    default:
      return "not remapped by the library";
  }
}
enum rocegw_memory_way {
  ROCEGW_MEMORY_CROSS = 0,
  ROCEGW_MEMORY_DESCRIPTOR = 1,
  ROCEGW_MEMORY_REMAPPED = 2
};
struct rocegw_mr_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t lkey;
  uint32_t rkey;
  uint32_t way; /* enum rocegw_memory_way */
};

struct rocegw_create_region {
  struct rocegw_request header;
  uint64_t address; /* page aligned */
  uint64_t length;
};

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

enum rocegw_qp_type {
  ROCEGW_QPT_RC = 2,
  ROCEGW_QPT_UC = 3,
  ROCEGW_QPT_UD = 4,
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
  uint32_t reserved;
};
struct rocegw_qp_reply {
  struct rocegw_reply header;
  uint32_t handle;
  uint32_t qpn;
  uint32_t sq_entries; /* power of two; what was asked for and at least 1 */
  uint32_t rq_entries;
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
  ROCEGW_OBJECT_PORT = 3
};
struct rocegw_async_event {
  uint64_t cookie; /* of the object */
  uint32_t type;   /* enum ibv_event_type */
  uint32_t kind;   /* enum rocegw_object_kind */
  uint32_t handle;
  uint32_t reserved;
};

/* ---- connection manager ---- */

struct rocegw_sockaddr {
  uint16_t family; /* AF_INET, AF_INET6, 0 = none */
  uint16_t port;   /* host order */
  uint32_t scope_id;
  uint32_t flow_info;  /* host order */
  uint8_t address[16]; /* IPv4 in the first four */
};
ROCEGW_STATIC_ASSERT(sizeof(struct rocegw_sockaddr) == 28, "rocegw_sockaddr");

struct rocegw_cm_create_id {
  struct rocegw_request header;
  uint32_t channel;
  uint32_t port_space; /* enum rdma_port_space */
  uint64_t cookie;     /* comes back in events */
};
struct rocegw_cm_bind {
  struct rocegw_request header;
  uint32_t id;
  uint32_t reserved;
  struct rocegw_sockaddr address;
};
struct rocegw_cm_resolve_addr {
  struct rocegw_request header;
  uint32_t id;
  uint32_t timeout_ms;
  struct rocegw_sockaddr source; /* family 0: by route */
  struct rocegw_sockaddr destination;
};
struct rocegw_cm_resolve_route {
  struct rocegw_request header;
  uint32_t id;
  uint32_t timeout_ms;
};
struct rocegw_cm_listen {
  struct rocegw_request header;
  uint32_t id;
  uint32_t backlog;
};
/* What bind, resolve and query leave behind. */
struct rocegw_cm_id_reply {
  struct rocegw_reply header;
  int32_t device; /* index, -1 = not bound to one */
  uint32_t port_space;
  struct rocegw_sockaddr source;
  struct rocegw_sockaddr destination;
  uint8_t sgid[16];
  uint8_t dgid[16];
  uint32_t sgid_index;
  uint32_t path_mtu; /* enum ibv_mtu, 0 = no route yet */
  uint32_t traffic_class;
  uint32_t flow_label;
};
#define ROCEGW_CM_PRIVATE_MAX 256u
struct rocegw_cm_param {
  uint32_t qpn;
  uint32_t qkey;
  uint8_t qp_type;
  uint8_t srq;
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t flow_control;
  uint8_t retry_count;
  uint8_t rnr_retry_count;
  uint8_t private_length;
  uint32_t ece_vendor;
  uint32_t ece_options;
  uint8_t private_data[ROCEGW_CM_PRIVATE_MAX];
};
struct rocegw_cm_connect { /* also CM_ACCEPT */
  struct rocegw_request header;
  uint32_t id;
  uint32_t reserved;
  uint64_t cookie; /* accept: the cookie of the new id from now on; connect: ignored */
  struct rocegw_cm_param param;
};
struct rocegw_cm_reject {
  struct rocegw_request header;
  uint32_t id;
  uint8_t reason; /* 0: consumer */
  uint8_t private_length;
  uint8_t reserved[2];
  uint8_t private_data[ROCEGW_CM_PRIVATE_MAX];
};
struct rocegw_cm_init_qp_attr {
  struct rocegw_request header;
  uint32_t id;
  uint32_t qp_state; /* enum ibv_qp_state */
};
struct rocegw_cm_qp_attr_reply {
  struct rocegw_reply header;
  uint32_t attr_mask;
  uint32_t reserved;
  struct rocegw_qp_attr attr;
};
struct rocegw_cm_set_option {
  struct rocegw_request header;
  uint32_t id;
  uint32_t level;  /* RDMA_OPTION_ID, RDMA_OPTION_IB */
  uint32_t option; /* RDMA_OPTION_ID_TOS .. */
  uint32_t length;
  uint8_t value[64];
};
struct rocegw_cm_migrate {
  struct rocegw_request header;
  uint32_t id;
  uint32_t channel;
};
struct rocegw_cm_notify {
  struct rocegw_request header;
  uint32_t id;
  uint32_t event; /* enum ibv_event_type */
};

/* Record on a CM channel. The new id of a CONNECT_REQUEST counts against its listener's backlog and
 * ends with it until the library names it in any request (QUERY_ID will do), which it does when it
 * hands the request to the program. */
struct rocegw_cm_event {
  uint64_t cookie;    /* of the id; for CONNECT_REQUEST that of the listening id */
  uint32_t id;        /* for CONNECT_REQUEST the new id */
  uint32_t listen_id; /* CONNECT_REQUEST only */
  uint32_t type;      /* enum rdma_cm_event_type */
  int32_t status;     /* 0, -errno, or the reject reason */
  int32_t device;
  uint32_t port_space;
  struct rocegw_sockaddr source;
  struct rocegw_sockaddr destination;
  uint8_t sgid[16];
  uint8_t dgid[16];
  uint32_t sgid_index;
  uint32_t path_mtu;
  uint32_t traffic_class;
  uint32_t flow_label;
  struct rocegw_cm_param param; /* depths from the receiver's point of view */
};

#ifdef __cplusplus
}
#endif
#endif /* ROCEGW_ABI_H */
