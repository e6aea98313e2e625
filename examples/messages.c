/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between endpoints, by rocegwdv.h. One endpoint receives from any number of senders; no
 * connection is made, and a sender's messages of no order pass each other where one is lost.
 *
 *   messages orders                    what the devices offer
 *   messages receive COUNT             makes an endpoint, prints where it is, and what comes
 *   messages send GID NUMBER COUNT     sends so many messages, then one that comes after them
 *
 * Run it with rocegw-run, or with librocegw-verbs.so in LD_PRELOAD. DEVICE names a device other
 * than the first, SGID the index of the address to send from.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rocegw/rocegwdv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 0x524f4345, DEPTH = 64, SIZE = 1024 };

static int fail(const char *what) {
  fprintf(stderr, "messages: %s: %s\n", what, strerror(errno));
  return 1;
}

static struct ibv_context *open_device(void) {
  const char *wanted = getenv("DEVICE");
  struct ibv_context *context = NULL;
  int count = 0;
  struct ibv_device **list = ibv_get_device_list(&count);
  for (int i = 0; i < count && context == NULL; ++i) {
    if (wanted != NULL && strcmp(wanted, ibv_get_device_name(list[i])) != 0) continue;
    if (rocegwdv_is_supported(list[i])) context = ibv_open_device(list[i]);
  }
  if (list != NULL) ibv_free_device_list(list);
  if (context == NULL) errno = ENODEV;
  return context;
}

struct side {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct ibv_cq *cq;
  struct ibv_mr *mr;
  struct ibv_qp *endpoint;
  char bytes[DEPTH][SIZE];
};

static int make(struct side *side) {
  side->context = open_device();
  if (side->context == NULL) return fail("no rocegw device");
  side->pd = ibv_alloc_pd(side->context);
  side->cq = ibv_create_cq(side->context, 2 * DEPTH, NULL, NULL, 0);
  if (side->pd == NULL || side->cq == NULL) return fail("completion queue");
  side->mr = ibv_reg_mr(side->pd, side->bytes, sizeof(side->bytes), IBV_ACCESS_LOCAL_WRITE);
  if (side->mr == NULL) return fail("memory");
  struct rocegwdv_ep_init_attr attr = {
      .send_cq = side->cq,
      .recv_cq = side->cq,
      .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
      .sq_sig_all = 1,
      .key = KEY,
      .service_mode = ROCEGWDV_SERVICE_BY_INITIATOR,
      .execution_order = ROCEGWDV_ORDER_NONE,
      /* So that the bytes of the oldest message are free again with its completion. */
      .completion_order = ROCEGWDV_COMPLETION_IN_ORDER,
  };
  side->endpoint = rocegwdv_create_ep(side->pd, &attr, sizeof(attr));
  return side->endpoint == NULL ? fail("endpoint") : 0;
}

static void drop(struct side *side) {
  if (side->endpoint != NULL) ibv_destroy_qp(side->endpoint);
  if (side->mr != NULL) ibv_dereg_mr(side->mr);
  if (side->cq != NULL) ibv_destroy_cq(side->cq);
  if (side->pd != NULL) ibv_dealloc_pd(side->pd);
  if (side->context != NULL) ibv_close_device(side->context);
}

static int sgid_index(void) {
  const char *index = getenv("SGID");
  return index != NULL ? atoi(index) : 0;
}

static struct ibv_sge piece(struct side *side, uint64_t slot, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)side->bytes[slot % DEPTH], length, side->mr->lkey};
  return sge;
}

static int post_receive(struct side *side, uint64_t id) {
  struct ibv_sge sge = piece(side, id, SIZE);
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr *bad;
  errno = ibv_post_recv(side->endpoint, &wr, &bad);
  return errno != 0 ? fail("receive") : 0;
}

static int receive(struct side *side, uint64_t count) {
  union ibv_gid gid;
  char address[INET6_ADDRSTRLEN];
  if (ibv_query_gid(side->context, 1, sgid_index(), &gid) != 0) return fail("address");
  inet_ntop(AF_INET6, gid.raw, address, sizeof(address));
  uint64_t posted = 0;
  while (posted < DEPTH && posted < count) {
    if (post_receive(side, posted++) != 0) return 1;
  }
  printf("send to %s %u\n", address, side->endpoint->qp_num);
  fflush(stdout);
  for (uint64_t got = 0; got < count;) {
    struct ibv_wc wc;
    if (ibv_poll_cq(side->cq, 1, &wc) != 1) continue;
    if (wc.status != IBV_WC_SUCCESS) {
      fprintf(stderr, "messages: receive: %s\n", ibv_wc_status_str(wc.status));
      return 1;
    }
    printf("from %u: %.*s\n", wc.src_qp, (int)wc.byte_len, side->bytes[wc.wr_id % DEPTH]);
    ++got;
    /* Receives complete as messages come: the bytes of this one are free. */
    if (posted++ < count && post_receive(side, wc.wr_id) != 0) return 1;
  }
  return 0;
}

static int send_all(struct side *side, const char *gid, uint32_t number, uint64_t count) {
  struct rocegwdv_peer_attr to = {.ep_num = number, .key = KEY};
  to.sgid_index = (uint8_t)sgid_index();
  if (inet_pton(AF_INET6, gid, to.gid.raw) != 1) {
    errno = EINVAL;
    return fail(gid);
  }
  struct rocegwdv_peer *peer = rocegwdv_create_peer(side->pd, &to, sizeof(to));
  if (peer == NULL) return fail("peer");
  int result = 0;
  for (uint64_t posted = 0, done = 0; done <= count && result == 0;) {
    while (posted <= count && posted - done < DEPTH) {
      char *text = side->bytes[posted % DEPTH];
      const int length = posted < count
                             ? snprintf(text, SIZE, "message %llu", (unsigned long long)posted)
                             : snprintf(text, SIZE, "that was all");
      struct ibv_sge sge = piece(side, posted, (uint32_t)length);
      struct rocegwdv_send_wr wr = {.peer = peer};
      wr.wr.wr_id = posted;
      wr.wr.opcode = IBV_WR_SEND;
      wr.wr.sg_list = &sge;
      wr.wr.num_sge = 1;
      /* The others pass each other; the last one comes when they are there. */
      if (posted == count) wr.fence = ROCEGWDV_FENCE_ALL;
      struct rocegwdv_send_wr *bad;
      errno = rocegwdv_post_send(side->endpoint, &wr, &bad);
      if (errno != 0) {
        result = fail("send");
        break;
      }
      ++posted;
    }
    struct ibv_wc wc;
    if (ibv_poll_cq(side->cq, 1, &wc) != 1) continue;
    ++done;
    if (wc.status != IBV_WC_SUCCESS) {
      fprintf(stderr, "messages: message %llu: %s\n", (unsigned long long)wc.wr_id,
              ibv_wc_status_str(wc.status));
      result = 1;
    }
  }
  rocegwdv_destroy_peer(peer);
  return result;
}

static int orders(void) {
  struct ibv_context *context = open_device();
  if (context == NULL) return fail("no rocegw device");
  struct rocegwdv_device_attr attr;
  errno = rocegwdv_query_device(context, &attr, sizeof(attr));
  const int result = errno != 0 ? fail("device") : 0;
  if (result == 0) {
    printf("%s: service modes 0x%x, execution orders 0x%x, fences 0x%x, completion orders 0x%x\n",
           ibv_get_device_name(context->device), attr.service_modes, attr.execution_orders,
           attr.fences, attr.completion_orders);
  }
  ibv_close_device(context);
  return result;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "orders") == 0) return orders();
  const int receives = argc == 3 && strcmp(argv[1], "receive") == 0;
  const int sends = argc == 5 && strcmp(argv[1], "send") == 0;
  if (!receives && !sends) {
    fprintf(stderr, "usage: messages orders | receive COUNT | send GID NUMBER COUNT\n");
    return 2;
  }
  struct side *side = calloc(1, sizeof(*side));
  if (side == NULL) return fail("memory");
  int result = make(side);
  if (result == 0 && receives) result = receive(side, strtoull(argv[2], NULL, 0));
  if (result == 0 && sends) {
    result =
        send_all(side, argv[2], (uint32_t)strtoul(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
  }
  drop(side);
  free(side);
  return result;
}
