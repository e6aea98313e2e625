/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages about connections, and records of their events. Part of rocegw_abi.h.
 */
#ifndef ROCEGW_ABI_CONNECTIONS_H
#define ROCEGW_ABI_CONNECTIONS_H

#include "gateway/abi/queues.h"

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
  /* Since minor 8. */
  uint32_t qp_type; /* enum rocegw_qp_type that it connects; 0: as the port space has it */
  uint32_t reserved;
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
  uint32_t with_qp; /* accept, since minor 7: not 0: the queue pair is brought to RTS before */
  uint64_t cookie;  /* accept: the cookie of the new id from now on; connect: ignored */
  struct rocegw_cm_param param;
};
struct rocegw_cm_step { /* CM_ESTABLISH, CM_DISCONNECT */
  struct rocegw_request header;
  uint32_t id;
  uint32_t with_qp; /* since minor 7: not 0: the id's queue pair is brought to RTS, to ERR before */
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
/* Later events come on the other channel. Since minor 14 with a descriptor: that of the channel
 * where the id is, from which the daemon takes what was not read and sends it on, what is other
 * ids' to the same channel again. The client reads nothing there until it has the answer. */
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

/* Where datagrams to the group go, as an event: MULTICAST_JOIN with dgid, QPN, Q_Key. Queue pairs
 * are attached by ATTACH_MULTICAST. */
struct rocegw_cm_join {
  struct rocegw_request header;
  uint32_t id;
  uint32_t join; /* comes back in the event */
  struct rocegw_sockaddr group;
  uint32_t reserved;
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
  uint32_t join;                /* MULTICAST_JOIN only; since minor 5 */
  uint32_t reserved;
};

#endif /* ROCEGW_ABI_CONNECTIONS_H */
