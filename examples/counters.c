/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that other programs read and count in, by endpoints of rocegwdv.h: no connection is made,
 * and the program whose memory it is does nothing for it.
 *
 *   counters serve COUNT READERS             gives its memory, prints where it is, and says so when
 *                                            so much was counted and so many have read; it then
 *                                            stays until it is killed
 *   counters count COUNT ADDRESS NUMBER KEY BASE
 *                                            adds so many times 1 to the counter there, then takes
 *                                            the lock there, reads the table and counts the reads,
 *                                            and gives the lock back
 *
 * With LOCK=swap in the environment of all that count, the lock is taken by a swap and given back
 * by a store, and who holds it tries the other atomics of rocegwdv.h on the word `marks`.
 *
 * Run it with rocegw-run, or with librocegw-verbs.so in LD_PRELOAD. DEVICE names a device other
 * than the first, SGID the index of the address to send from (default: of IPv4).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <rocegw/rocegwdv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EP_KEY = 0x434f554e, DEPTH = 32, TABLE = 100000 };

/* What is served. */
struct memory {
  uint64_t counter;
  uint64_t lock; /* 0: free; else whose it is */
  uint64_t reads;
  uint64_t marks; /* 0 while no program holds the lock */
  uint8_t table[TABLE];
};

struct side {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct ibv_cq *cq;
  struct ibv_mr *mr;
  struct ibv_qp *endpoint;
  struct memory memory;    /* of who serves; what was read, of who counts */
  uint64_t results[DEPTH]; /* of fetch-adds */
};

static int fail(const char *what) {
  fprintf(stderr, "counters: %s: %s\n", what, strerror(errno));
  return 1;
}

static uint8_t entry(uint32_t index) { return (uint8_t)(index * 7 + index / 251); }

static int open_device(struct side *side) {
  const char *wanted = getenv("DEVICE");
  int count = 0;
  struct ibv_device **list = ibv_get_device_list(&count);
  for (int i = 0; i < count && side->context == NULL; ++i) {
    if (wanted != NULL && strcmp(wanted, ibv_get_device_name(list[i])) != 0) continue;
    if (rocegwdv_is_supported(list[i])) side->context = ibv_open_device(list[i]);
  }
  if (list != NULL) ibv_free_device_list(list);
  if (side->context == NULL) {
    errno = ENODEV;
    return fail("no rocegw device");
  }
  struct rocegwdv_device_attr attr;
  errno = rocegwdv_query_device(side->context, &attr, sizeof(attr));
  if (errno != 0) return fail("device");
  if ((attr.ep_operations & 1u << IBV_WR_RDMA_READ) == 0) {
    errno = EOPNOTSUPP;
    return fail("READs of endpoints");
  }
  return 0;
}

static int make(struct side *side, int access) {
  if (open_device(side) != 0) return 1;
  side->pd = ibv_alloc_pd(side->context);
  if (side->pd == NULL) return fail("protection domain");
  side->cq = ibv_create_cq(side->context, 2 * DEPTH, NULL, NULL, 0);
  if (side->cq == NULL) return fail("completion queue");
  side->mr = ibv_reg_mr(side->pd, side, sizeof(*side), IBV_ACCESS_LOCAL_WRITE | access);
  if (side->mr == NULL) return fail("memory");
  struct rocegwdv_ep_init_attr attr = {
      .send_cq = side->cq,
      .recv_cq = side->cq,
      .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
      .sq_sig_all = 1,
      .key = EP_KEY,
      .service_mode = ROCEGWDV_SERVICE_BY_INITIATOR,
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

static int serve(struct side *side, uint64_t count, uint64_t readers) {
  union ibv_gid gid;
  char address[INET6_ADDRSTRLEN];
  if (make(side, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) != 0)
    return 1;
  for (uint32_t i = 0; i < TABLE; ++i) side->memory.table[i] = entry(i);
  if (ibv_query_gid(side->context, 1, sgid_index(side->context), &gid) != 0) return fail("address");
  inet_ntop(AF_INET6, gid.raw, address, sizeof(address));
  printf("count at %s %u 0x%x 0x%" PRIxPTR "\n", address, side->endpoint->qp_num, side->mr->rkey,
         (uintptr_t)&side->memory);
  fflush(stdout);
  const volatile struct memory *now = &side->memory;
  while (now->counter < count || now->reads < readers || now->lock != 0) usleep(1000);
  printf("counter %" PRIu64 " reads %" PRIu64 "\n", now->counter, now->reads);
  fflush(stdout);
  /* Whoever has counted last may not have its answer yet. */
  pause();
  return 0;
}

/* Where the other program's memory is. */
struct there {
  struct rocegwdv_peer *peer;
  uint32_t rkey;
  uint64_t base;
};

static int post(struct side *side, const struct there *there, struct rocegwdv_send_wr *wr,
                void *local, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)local, length, side->mr->lkey};
  struct rocegwdv_send_wr *bad;
  wr->peer = there->peer;
  wr->wr.sg_list = &sge;
  wr->wr.num_sge = 1;
  errno = rocegwdv_post_send(side->endpoint, wr, &bad);
  return errno != 0 ? fail("request") : 0;
}

static int post_add(struct side *side, const struct there *there, uint64_t offset, uint64_t slot) {
  struct rocegwdv_send_wr wr = {.execution_order = ROCEGWDV_ORDER_NONE};
  wr.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.wr.atomic.remote_addr = there->base + offset;
  wr.wr.wr.atomic.rkey = there->rkey;
  wr.wr.wr.atomic.compare_add = 1;
  return post(side, there, &wr, &side->results[slot % DEPTH], sizeof(uint64_t));
}

static int post_swap(struct side *side, const struct there *there, uint64_t from, uint64_t to) {
  struct rocegwdv_send_wr wr = {.wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP}};
  wr.wr.wr.atomic.remote_addr = there->base + offsetof(struct memory, lock);
  wr.wr.wr.atomic.rkey = there->rkey;
  wr.wr.wr.atomic.compare_add = from;
  wr.wr.wr.atomic.swap = to;
  return post(side, there, &wr, &side->results[0], sizeof(uint64_t));
}

/* An atomic of rocegwdv_wr_opcode on the word at the offset. */
static int post_operation(struct side *side, const struct there *there, int opcode, uint64_t offset,
                          uint64_t operand) {
  struct rocegwdv_send_wr wr = {.wr = {.opcode = (enum ibv_wr_opcode)opcode}};
  wr.wr.wr.atomic.remote_addr = there->base + offset;
  wr.wr.wr.atomic.rkey = there->rkey;
  wr.wr.wr.atomic.compare_add = operand;
  return post(side, there, &wr, &side->results[0], sizeof(uint64_t));
}

/* So many requests end. */
static int await(struct side *side, uint64_t count) {
  while (count != 0) {
    struct ibv_wc wc;
    if (ibv_poll_cq(side->cq, 1, &wc) != 1) continue;
    if (wc.status != IBV_WC_SUCCESS) {
      fprintf(stderr, "counters: request: %s\n", ibv_wc_status_str(wc.status));
      return 1;
    }
    --count;
  }
  return 0;
}

static int add(struct side *side, const struct there *there, uint64_t count) {
  uint64_t posted = 0;
  for (uint64_t done = 0; done < count; ++done) {
    while (posted < count && posted - done < DEPTH) {
      if (post_add(side, there, offsetof(struct memory, counter), posted++) != 0) return 1;
    }
    if (await(side, 1) != 0) return 1;
  }
  return 0;
}

static int locks_by_swap(void) {
  const char *lock = getenv("LOCK");
  return lock != NULL && strcmp(lock, "swap") == 0;
}

static int take_lock(struct side *side, const struct there *there) {
  const uint64_t me = side->endpoint->qp_num;
  do {
    const int failed = locks_by_swap() ? post_operation(side, there, ROCEGWDV_WR_ATOMIC_SWAP,
                                                        offsetof(struct memory, lock), 1)
                                       : post_swap(side, there, 0, me);
    if (failed || await(side, 1) != 0) return 1;
  } while (side->results[0] != 0);
  return 0;
}

/* Ends in strong order behind what was done under the lock. */
static int post_unlock(struct side *side, const struct there *there) {
  if (!locks_by_swap()) return post_swap(side, there, side->endpoint->qp_num, 0);
  return post_operation(side, there, ROCEGWDV_WR_ATOMIC_STORE, offsetof(struct memory, lock), 0);
}

/* Under the lock, each operation finds what the one before has left; the last one leaves 0. */
static int mark(struct side *side, const struct there *there) {
  static const struct {
    int opcode;
    uint64_t operand, before;
  } steps[] = {{ROCEGWDV_WR_ATOMIC_FETCH_OR, 0x0F, 0},
               {ROCEGWDV_WR_ATOMIC_LOAD, 0, 0x0F},
               {ROCEGWDV_WR_ATOMIC_FETCH_AND, 0x3C, 0x0F},
               {ROCEGWDV_WR_ATOMIC_FETCH_XOR, 0xFF, 0x0C},
               {ROCEGWDV_WR_ATOMIC_FETCH_SUB, 0xF3, 0xF3}};
  for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); ++i) {
    if (post_operation(side, there, steps[i].opcode, offsetof(struct memory, marks),
                       steps[i].operand) != 0 ||
        await(side, 1) != 0)
      return 1;
    if (side->results[0] == steps[i].before) continue;
    fprintf(stderr, "counters: operation %d has found 0x%" PRIx64 "\n", steps[i].opcode,
            side->results[0]);
    return 1;
  }
  return 0;
}

/* Under the lock of those who read: one of them at a time counts with a READ and a WRITE. */
static int read_table(struct side *side, const struct there *there) {
  if (take_lock(side, there) != 0) return 1;
  if (locks_by_swap() && mark(side, there) != 0) return 1;
  struct rocegwdv_send_wr read = {.wr = {.opcode = IBV_WR_RDMA_READ}};
  read.wr.wr.rdma.remote_addr = there->base;
  read.wr.wr.rdma.rkey = there->rkey;
  if (post(side, there, &read, &side->memory, sizeof(side->memory)) != 0 || await(side, 1) != 0)
    return 1;
  for (uint32_t i = 0; i < TABLE; ++i) {
    if (side->memory.table[i] == entry(i)) continue;
    fprintf(stderr, "counters: byte %u of the table is not what is there\n", i);
    return 1;
  }
  ++side->memory.reads;
  struct rocegwdv_send_wr write = {.wr = {.opcode = IBV_WR_RDMA_WRITE}};
  write.wr.wr.rdma.remote_addr = there->base + offsetof(struct memory, reads);
  write.wr.wr.rdma.rkey = there->rkey;
  /* In strong order: the lock is free when the count is there. */
  if (post(side, there, &write, &side->memory.reads, sizeof(uint64_t)) != 0) return 1;
  if (post_unlock(side, there) != 0 || await(side, 2) != 0) return 1;
  return side->results[0] == (locks_by_swap() ? 1 : side->endpoint->qp_num) ? 0 : 1;
}

static int count_there(struct side *side, uint64_t count, char **words) {
  struct there there = {.rkey = (uint32_t)strtoul(words[2], NULL, 0),
                        .base = strtoull(words[3], NULL, 0)};
  struct rocegwdv_peer_attr to = {.ep_num = (uint32_t)strtoul(words[1], NULL, 0), .key = EP_KEY};
  if (make(side, 0) != 0) return 1;
  to.sgid_index = (uint8_t)sgid_index(side->context);
  if (inet_pton(AF_INET6, words[0], to.gid.raw) != 1) {
    errno = EINVAL;
    return fail(words[0]);
  }
  there.peer = rocegwdv_create_peer(side->pd, &to, sizeof(to));
  if (there.peer == NULL) return fail(words[0]);
  int result = add(side, &there, count);
  if (result == 0) result = read_table(side, &there);
  rocegwdv_destroy_peer(there.peer);
  if (result == 0) printf("counted %" PRIu64 ", the table is whole\n", count);
  return result;
}

int main(int argc, char **argv) {
  const int serves = argc == 4 && strcmp(argv[1], "serve") == 0;
  const int counts = argc == 7 && strcmp(argv[1], "count") == 0;
  if (!serves && !counts) {
    fprintf(stderr, "usage: counters serve COUNT READERS | count COUNT ADDRESS NUMBER KEY BASE\n");
    return 2;
  }
  struct side *side = calloc(1, sizeof(*side));
  if (side == NULL) return fail("memory");
  const uint64_t count = strtoull(argv[2], NULL, 0);
  const int result =
      serves ? serve(side, count, strtoull(argv[3], NULL, 0)) : count_there(side, count, argv + 3);
  drop(side);
  free(side);
  return result;
}
