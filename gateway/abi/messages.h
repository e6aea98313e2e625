/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on the attach socket: their form, their types, and those about the session, its devices
 * and contexts. Part of rocegw_abi.h.
 */
#ifndef ROCEGW_ABI_MESSAGES_H
#define ROCEGW_ABI_MESSAGES_H

#include "gateway/abi/rings.h"

/* SOCK_SEQPACKET: one message per record, at most one descriptor (SCM_RIGHTS) each. A request is a
 * header and a body of its type; the reply repeats type and request_id. Requests of one connection
 * are answered in order. */
struct rocegw_request {
  uint32_t type;
  uint32_t length;     /* header and body, bytes */
  uint64_t request_id; /* 0, since minor 7: no answer is wanted; what fails then tells nobody, but
                          since minor 9 for CM_RESOLVE_ADDR, CM_RESOLVE_ROUTE, CM_CONNECT, CM_ACCEPT
                          and CM_ESTABLISH: ADDR_ERROR, ROUTE_ERROR or CONNECT_ERROR on the id's
                          channel, with the errno as status */
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
  ROCEGW_MSG_CREATE_SRQ = 25,
  ROCEGW_MSG_MODIFY_SRQ = 26,
  ROCEGW_MSG_QUERY_SRQ = 27,
  ROCEGW_MSG_DESTROY_SRQ = 28,
  ROCEGW_MSG_CREATE_GROUP = 29,
  ROCEGW_MSG_DESTROY_GROUP = 30,
  ROCEGW_MSG_RESIZE_CQ = 31, /* answered as CREATE_CQ */
  ROCEGW_MSG_MODERATE_CQ = 32,
  ROCEGW_MSG_ATTACH_MULTICAST = 33,
  ROCEGW_MSG_DETACH_MULTICAST = 34,
  ROCEGW_MSG_ALLOC_MW = 35,
  ROCEGW_MSG_DEALLOC_MW = 36,
  ROCEGW_MSG_OPEN_XRCD = 37, /* descriptor: of the file that names the domain (may be absent) */
  ROCEGW_MSG_CLOSE_XRCD = 38,
  ROCEGW_MSG_OPEN_QP = 39,  /* answered as CREATE_QP */
  ROCEGW_MSG_REREG_MR = 40, /* answered as REG_MR */
  ROCEGW_MSG_TAKE_AHS = 41,
  ROCEGW_MSG_GIVE_AHS = 42,
  ROCEGW_MSG_IMPORT_REGION = 43, /* descriptor: a dma-buf; answered as CREATE_REGION */
  ROCEGW_MSG_IMPORT_DEVICE = 44, /* descriptor: by its kind; answered as CREATE_REGION */
  ROCEGW_MSG_MODIFY_EP = 45,     /* since minor 17 */
  ROCEGW_MSG_QUERY_EP = 46,      /* since minor 17 */
  ROCEGW_MSG_USE_RINGS = 47,     /* reply descriptor: struct rocegw_message_rings; since minor 18 */

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
  ROCEGW_MSG_CM_MIGRATE = 79, /* descriptor: of the channel where the id is (may be absent) */
  ROCEGW_MSG_CM_NOTIFY = 80,
  ROCEGW_MSG_CM_QUERY_ID = 81,
  ROCEGW_MSG_CM_JOIN = 82, /* answered by a MULTICAST_JOIN event as well */

  /* Daemon to client, unasked; they come before the reply that needs them. */
  ROCEGW_MSG_CHUNK = 128,  /* descriptor: memfd of the chunk */
  ROCEGW_MSG_WORKER = 129, /* descriptor: eventfd that wakes the worker */
  ROCEGW_MSG_RINGS_WAKE =
      130, /* descriptor: eventfd that wakes the daemon for requests in a ring */
};

struct rocegw_hello {
  struct rocegw_request header;
  uint32_t magic;
  uint32_t major;
  uint32_t minor;
  uint32_t flags;
  /* In a container that was given the library: what LD_PRELOAD names besides, "" when nothing or
     not such a container. May be cut off. */
  char own_preload[128];
};
enum rocegw_welcome_flags {
  ROCEGW_WELCOME_REMAP = 1, /* the pool allows remapping; the reply's descriptor is /dev/userfaultfd
                               where there is one */
};
/* The reply to a HELLO with an error may have this body. */
struct rocegw_refusal {
  struct rocegw_reply header;
  char reason[264]; /* for people, one line; "" when the error says it all */
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

enum rocegw_device_features {
  /* FLUSH and ATOMIC WRITE; regions and queue pairs may have IBV_ACCESS_FLUSH_GLOBAL. */
  ROCEGW_DEVICE_PLACEMENT = 1
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
  /* Since minor 5. */
  uint32_t max_multicast; /* attachments of queue pairs of a session to groups */
  /* Since minor 6. */
  uint32_t max_mw; /* memory windows; 0: there are none */
  /* Since minor 8. */
  uint32_t max_xrcd; /* XRC domains that a process may have open; 0: there is no XRC */
  /* Since minor 10. */
  uint32_t features; /* enum rocegw_device_features */
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

/* Address handles stay in the client, which counts them here before it makes them: so many that it
 * would like to have, and in the answer those that it may make (one at least). GIVE_AHS takes back
 * what it does not need any more. Since minor 13. */
struct rocegw_ahs {
  struct rocegw_request header;
  uint32_t count;
  uint32_t reserved;
};
struct rocegw_ahs_reply {
  struct rocegw_reply header;
  uint32_t count;
  uint32_t reserved;
};

struct rocegw_alloc_pd {
  struct rocegw_request header;
  uint32_t context;
  uint32_t reserved;
};

#endif /* ROCEGW_ABI_MESSAGES_H */
