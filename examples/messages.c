/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between endpoints, by rocegwdv.h. One endpoint receives from any number of senders; no
 * connection is made, and a sender's messages of no order pass each other where one is lost.
 *
 *   messages orders                          what the devices offer
 *   messages receive COUNT                   makes an endpoint, prints where it is, and what comes
 *   messages group COUNT MEMBERS DISPATCH    the same with a group of endpoints, a thread for each;
 *                                            DISPATCH is hash, round-robin or depth
 *   messages send COUNT ADDRESS NUMBER ...   sends so many messages to each of these endpoints,
 * then one more that comes after them
 *
 * Run it with rocegw-run, or with librocegw-verbs.so in LD_PRELOAD. DEVICE names a device other
 * than the first, SGID the index of the address to send from (default: of IPv4). An ADDRESS is one
 * of IPv4, of IPv6 or a GID. Who cannot be reached any more gets no further messages, and the
 * others theirs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rocegw/rocegwdv.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 0x524f4345, DEPTH = 64, TEXT = 32, SIZE = 8192 };

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
  int member; /* of a group, counted from 1; context and protection domain are the group's */
  char bytes[DEPTH][SIZE];
};

static int open_side(struct side *side) {
  side->context = open_device();
  if (side->context == NULL) return fail("no rocegw device");
  side->pd = ibv_alloc_pd(side->context);
  return side->pd == NULL ? fail("protection domain") : 0;
}

static int make(struct side *side, struct rocegwdv_group *group) {
  if (side->member == 0 && open_side(side) != 0) return 1;
  side->cq = ibv_create_cq(side->context, 2 * DEPTH, NULL, NULL, 0);
  if (side->cq == NULL) return fail("completion queue");
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
      .group = group,
  };
  side->endpoint = rocegwdv_create_ep(side->pd, &attr, sizeof(attr));
  return side->endpoint == NULL ? fail("endpoint") : 0;
}

static void drop(struct side *side) {
  if (side->endpoint != NULL) ibv_destroy_qp(side->endpoint);
  if (side->mr != NULL) ibv_dereg_mr(side->mr);
  if (side->cq != NULL) ibv_destroy_cq(side->cq);
  if (side->member != 0) return;
  if (side->pd != NULL) ibv_dealloc_pd(side->pd);
  if (side->context != NULL) ibv_close_device(side->context);
}

/* Without SGID the first address of IPv4: index 0 is usually the link-local one. */
static int sgid_index(struct ibv_context *context) {
  static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
  const char *index = getenv("SGID");
  union ibv_gid gid;
  if (index != NULL) return atoi(index);
  for (int i = 0; ibv_query_gid(context, 1, i, &gid) == 0; ++i)
    if (memcmp(gid.raw, mapped, sizeof(mapped)) == 0) return i;
  return 0;
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

/* What the bytes of a message say: its number in a line, then a pattern that is its own. */
static uint32_t length_of(uint64_t number) {
  return TEXT + (uint32_t)(number * 997 % (SIZE - TEXT + 1));
}

static char filler(uint64_t number, uint32_t at) { return (char)(number * 7 + at); }

static uint32_t write_message(char *bytes, uint64_t number, uint64_t count) {
  memset(bytes, 0, TEXT);
  if (number == count) {
    snprintf(bytes, TEXT, "that was all");
    return TEXT;
  }
  snprintf(bytes, TEXT, "message %llu", (unsigned long long)number);
  for (uint32_t at = TEXT; at < length_of(number); ++at) bytes[at] = filler(number, at);
  return length_of(number);
}

static int is_whole(const char *bytes, uint32_t length) {
  unsigned long long number;
  if (length < TEXT || memchr(bytes, 0, TEXT) == NULL) return 0;
  if (sscanf(bytes, "message %llu", &number) != 1) return length == TEXT;
  for (uint32_t at = TEXT; at < length; ++at) {
    if (bytes[at] != filler(number, at)) return 0;
  }
  return length == length_of(number);
}

static int announce(struct side *side, uint32_t number) {
  union ibv_gid gid;
  char address[INET6_ADDRSTRLEN];
  if (ibv_query_gid(side->context, 1, sgid_index(side->context), &gid) != 0) return fail("address");
  inet_ntop(AF_INET6, gid.raw, address, sizeof(address));
  printf("send to %s %u\n", address, number);
  fflush(stdout);
  return 0;
}

static int post_all(struct side *side) {
  int result = 0;
  for (uint64_t id = 0; id < DEPTH && result == 0; ++id) result = post_receive(side, id);
  return result;
}

/* Until so many have come here, and to others that count in the same place. */
static int receive(struct side *side, atomic_ullong *got, uint64_t count) {
  while (atomic_load(got) < count) {
    struct ibv_wc wc;
    if (ibv_poll_cq(side->cq, 1, &wc) != 1) continue;
    if (wc.status != IBV_WC_SUCCESS) {
      fprintf(stderr, "messages: receive: %s\n", ibv_wc_status_str(wc.status));
      return 1;
    }
    const char *bytes = side->bytes[wc.wr_id % DEPTH];
    if (!is_whole(bytes, wc.byte_len)) {
      fprintf(stderr, "messages: %u bytes from %u are not what was sent\n", wc.byte_len, wc.src_qp);
      return 1;
    }
    /* In one go: other members print, too. */
    if (side->member != 0) {
      printf("member %d from %u: %s (%u bytes)\n", side->member, wc.src_qp, bytes, wc.byte_len);
    } else {
      printf("from %u: %s (%u bytes)\n", wc.src_qp, bytes, wc.byte_len);
    }
    atomic_fetch_add(got, 1);
    /* Receives complete as messages come: the bytes of this one are free. */
    if (post_receive(side, wc.wr_id) != 0) return 1;
  }
  return 0;
}

static int receive_alone(struct side *side, uint64_t count) {
  atomic_ullong got = 0;
  int result = make(side, NULL);
  if (result == 0) result = post_all(side);
  if (result == 0) result = announce(side, side->endpoint->qp_num);
  return result != 0 ? result : receive(side, &got, count);
}

/* A member of a group and its thread. */
struct member {
  struct side *side;
  pthread_t thread;
  atomic_ullong *got;
  uint64_t count;
  int result;
};

static void *run_member(void *argument) {
  struct member *member = argument;
  member->result = receive(member->side, member->got, member->count);
  /* The others need not wait for what will not come. */
  if (member->result != 0) atomic_store(member->got, member->count);
  return NULL;
}

static int run_members(struct member *members, int many) {
  int started = 0;
  int result = 0;
  while (started < many && result == 0) {
    errno = pthread_create(&members[started].thread, NULL, run_member, &members[started]);
    if (errno != 0) result = fail("thread");
    if (result == 0) ++started;
  }
  if (result != 0) atomic_store(members->got, members->count);
  for (int i = 0; i < started; ++i) {
    pthread_join(members[i].thread, NULL);
    result |= members[i].result;
  }
  return result;
}

static int receive_together(struct side *first, uint64_t count, int many, const char *how) {
  static const char *const names[] = {"hash", "round-robin", "depth"};
  struct rocegwdv_group_init_attr attr = {.key = KEY};
  while (attr.dispatch < 3 && strcmp(names[attr.dispatch], how) != 0) ++attr.dispatch;
  if (open_side(first) != 0) return 1;
  struct rocegwdv_group *group = rocegwdv_create_group(first->pd, &attr, sizeof(attr));
  if (group == NULL) return fail("group");
  atomic_ullong got = 0;
  struct member *members = calloc((size_t)many, sizeof(*members));
  int result = members == NULL ? fail("memory") : 0;
  for (int i = 0; i < many && result == 0; ++i) {
    members[i] = (struct member){.side = calloc(1, sizeof(*first)), .got = &got, .count = count};
    if (members[i].side == NULL) {
      result = fail("memory");
      break;
    }
    members[i].side->context = first->context;
    members[i].side->pd = first->pd;
    members[i].side->member = i + 1;
    result = make(members[i].side, group);
    if (result == 0) result = post_all(members[i].side);
  }
  if (result == 0) result = announce(first, group->group_num);
  if (result == 0) result = run_members(members, many);
  for (int i = 0; i < many && members != NULL; ++i) {
    if (members[i].side != NULL) drop(members[i].side);
    free(members[i].side);
  }
  free(members);
  rocegwdv_destroy_group(group);
  return result;
}

struct target {
  const char *address;
  uint32_t number;
  struct rocegwdv_peer *peer;
  uint64_t posted;
  uint64_t arrived;
  int lost; /* a message to it has failed */
};

/* An address of IPv4 is ::ffff:a.b.c.d among GIDs. */
static int read_address(const char *text, union ibv_gid *gid) {
  char mapped[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, text, gid->raw) == 1) return 0;
  snprintf(mapped, sizeof(mapped), "::ffff:%s", text);
  return inet_pton(AF_INET6, mapped, gid->raw) == 1 ? 0 : EINVAL;
}

static int find(struct side *side, struct target *target) {
  struct rocegwdv_peer_attr to = {.ep_num = target->number, .key = KEY};
  to.sgid_index = (uint8_t)sgid_index(side->context);
  errno = read_address(target->address, &to.gid);
  if (errno == 0) target->peer = rocegwdv_create_peer(side->pd, &to, sizeof(to));
  return target->peer == NULL ? fail(target->address) : 0;
}

/* The next one that is due a message, one after the other; NULL: nobody. */
static struct target *next_target(struct target *targets, int many, uint64_t count, int *turn) {
  for (int looked = 0; looked < many; ++looked) {
    struct target *target = &targets[*turn];
    *turn = (*turn + 1) % many;
    if (!target->lost && target->posted <= count) return target;
  }
  return NULL;
}

static int post(struct side *side, struct target *target, int index, uint64_t slot,
                uint64_t count) {
  struct ibv_sge sge = piece(side, slot, 0);
  sge.length = write_message(side->bytes[slot % DEPTH], target->posted, count);
  struct rocegwdv_send_wr wr = {.peer = target->peer};
  wr.wr.wr_id = (uint64_t)index;
  wr.wr.opcode = IBV_WR_SEND;
  wr.wr.sg_list = &sge;
  wr.wr.num_sge = 1;
  /* The others pass each other; the last one comes when they are there. */
  if (target->posted == count) wr.fence = ROCEGWDV_FENCE_ALL;
  struct rocegwdv_send_wr *bad;
  errno = rocegwdv_post_send(side->endpoint, &wr, &bad);
  ++target->posted;
  return errno != 0 ? fail("send") : 0;
}

static int send_to(struct side *side, struct target *targets, int many, uint64_t count) {
  uint64_t posted = 0;
  uint64_t done = 0;
  int turn = 0;
  for (struct target *next = next_target(targets, many, count, &turn);
       next != NULL || done < posted;) {
    if (next != NULL && posted - done < DEPTH) {
      if (post(side, next, (int)(next - targets), posted++, count) != 0) return 1;
      next = next_target(targets, many, count, &turn);
      continue;
    }
    struct ibv_wc wc;
    if (ibv_poll_cq(side->cq, 1, &wc) != 1) continue;
    ++done;
    struct target *target = &targets[wc.wr_id];
    if (wc.status == IBV_WC_SUCCESS) {
      ++target->arrived;
    } else if (!target->lost) {
      fprintf(stderr, "messages: %s %u cannot be reached: %s\n", target->address, target->number,
              ibv_wc_status_str(wc.status));
      target->lost = 1;
      /* Who is next may be this one. */
      if (next == target) next = next_target(targets, many, count, &turn);
    }
  }
  return 0;
}

static int send_all(struct side *side, uint64_t count, int many, char **words) {
  struct target *targets = calloc((size_t)many, sizeof(*targets));
  int result = targets == NULL ? fail("memory") : 0;
  for (int i = 0; i < many && result == 0; ++i) {
    targets[i].address = words[2 * i];
    targets[i].number = (uint32_t)strtoul(words[2 * i + 1], NULL, 0);
    result = find(side, &targets[i]);
  }
  if (result == 0) result = send_to(side, targets, many, count);
  for (int i = 0; i < many && targets != NULL; ++i) {
    const struct target *target = &targets[i];
    if (target->peer == NULL) continue;
    rocegwdv_destroy_peer(target->peer);
    printf("to %s %u: %llu of %llu messages arrived\n", target->address, target->number,
           (unsigned long long)target->arrived, (unsigned long long)count + 1);
    result |= target->lost;
  }
  free(targets);
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
  const int together = argc == 5 && strcmp(argv[1], "group") == 0;
  const int sends = argc >= 5 && argc % 2 == 1 && strcmp(argv[1], "send") == 0;
  if (!receives && !together && !sends) {
    fprintf(
        stderr,
        "usage: messages orders | receive COUNT | group COUNT MEMBERS hash|round-robin|depth |\n"
        "                send COUNT ADDRESS NUMBER ...\n");
    return 2;
  }
  struct side *side = calloc(1, sizeof(*side));
  if (side == NULL) return fail("memory");
  const uint64_t count = strtoull(argv[2], NULL, 0);
  int result = 0;
  if (receives) result = receive_alone(side, count);
  if (together) result = receive_together(side, count, atoi(argv[3]), argv[4]);
  if (sends) result = make(side, NULL);
  if (sends && result == 0) result = send_all(side, count, (argc - 3) / 2, argv + 3);
  drop(side);
  free(side);
  return result;
}
