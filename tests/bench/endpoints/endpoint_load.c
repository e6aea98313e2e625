/* SPDX-License-Identifier: Apache-2.0
 *
 * Load on endpoints of another host, by rocegwdv.h.
 *
 *   endpoint_load serve TARGETS             makes so many endpoints and a region of memory, prints
 *                                           a line that says where they are, and waits for a signal
 *   endpoint_load locks CONTENDERS SECONDS BACKOFF_US ADDRESS VA RKEY NUMBER ...
 *   endpoint_load fan_out ROUNDS BYTES ADDRESS VA RKEY NUMBER ...
 *
 * locks: so many endpoints take one lock in the served memory, a word that compare-and-swap sets
 * from 0 to the contender's number, and release it by a swap with 0, which must find that number.
 * A contender that did not get it tries again, after a random time that doubles up to 64 times
 * BACKOFF_US; 0: at once. fan_out: one endpoint writes BYTES to a place of its own at each of the
 * numbered endpoints and waits for all answers, again and again.
 *
 * Prints one line of JSON. Exit status: 0, 1 a failure or a lock that two contenders had, 2 wrong
 * usage. Run it with rocegw-run. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gateway/client/dv/rocegwdv.h"

enum { kKey = 0x524f4345, kMostTargets = 1024, kPlace = 4096, kLatencies = 1 << 20 };

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr* mr;
static uint8_t* memory;

static void die(const char* what) {
  fprintf(stderr, "endpoint_load: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void open_device(size_t bytes, int completions) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count && context == NULL; ++i) {
    if (rocegwdv_is_supported(list[i])) context = ibv_open_device(list[i]);
  }
  if (list != NULL) ibv_free_device_list(list);
  if (context == NULL) die("no rocegw device");
  pd = ibv_alloc_pd(context);
  memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (pd == NULL || memory == NULL) die("memory");
  memset(memory, 0, (bytes + 4095) / 4096 * 4096);
  mr = ibv_reg_mr(pd, memory, bytes,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      IBV_ACCESS_REMOTE_ATOMIC);
  cq = ibv_create_cq(context, completions, NULL, NULL, 0);
  if (mr == NULL || cq == NULL) die("region or completion queue");
}

static struct ibv_qp* make_endpoint(uint32_t depth) {
  struct rocegwdv_ep_init_attr attr = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {.max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
      .sq_sig_all = 1,
      .key = kKey,
      .service_mode = ROCEGWDV_SERVICE_UNORDERED,
      .execution_order = ROCEGWDV_ORDER_NONE,
      .completion_order = ROCEGWDV_COMPLETION_ANY,
  };
  struct ibv_qp* endpoint = rocegwdv_create_ep(pd, &attr, sizeof attr);
  if (endpoint == NULL) die("endpoint");
  return endpoint;
}

/* The first address of IPv4. */
static uint8_t sgid_index(union ibv_gid* gid) {
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  for (uint8_t i = 0; ibv_query_gid(context, 1, i, gid) == 0; ++i)
    if (memcmp(gid->raw, mapped, sizeof mapped) == 0) return i;
  die("no address of IPv4");
  return 0;
}

static struct rocegwdv_peer* make_peer(const char* address, const char* number) {
  union ibv_gid own;
  struct rocegwdv_peer_attr to = {.ep_num = (uint32_t)strtoul(number, NULL, 0), .key = kKey};
  to.sgid_index = sgid_index(&own);
  if (inet_pton(AF_INET6, address, to.gid.raw) != 1) {
    errno = EINVAL;
    die(address);
  }
  struct rocegwdv_peer* peer = rocegwdv_create_peer(pd, &to, sizeof to);
  if (peer == NULL) die("peer");
  return peer;
}

static void serve(int targets) {
  open_device((size_t)targets * kPlace, 16);
  for (int i = 0; i < targets; ++i) {
    struct ibv_qp* endpoint = make_endpoint(1);
    if (i == 0) {
      union ibv_gid gid;
      char address[INET6_ADDRSTRLEN];
      sgid_index(&gid);
      printf("serving %s %llu %u", inet_ntop(AF_INET6, gid.raw, address, sizeof address),
             (unsigned long long)(uintptr_t)memory, mr->rkey);
    }
    printf(" %u", endpoint->qp_num);
  }
  printf("\n");
  fflush(stdout);
  for (;;) pause();
}

static int compare(const void* a, const void* b) {
  const uint32_t left = *(const uint32_t*)a, right = *(const uint32_t*)b;
  return left < right ? -1 : left > right;
}

static uint32_t latencies[kLatencies];
static size_t latency_count;

static void add_latency(uint64_t nanoseconds) {
  if (latency_count < kLatencies) latencies[latency_count++] = (uint32_t)(nanoseconds / 1000);
}

static void print_latencies(void) {
  qsort(latencies, latency_count, sizeof *latencies, compare);
  printf("\"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u",
         latency_count != 0 ? latencies[latency_count / 2] : 0,
         latency_count != 0 ? latencies[latency_count * 99 / 100] : 0,
         latency_count != 0 ? latencies[latency_count - 1] : 0);
}

static void post(struct ibv_qp* endpoint, struct rocegwdv_peer* peer, struct ibv_send_wr request,
                 uint64_t at, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)memory + at, length, mr->lkey};
  struct rocegwdv_send_wr wr = {.wr = request, .peer = peer};
  wr.wr.sg_list = &sge;
  wr.wr.num_sge = 1;
  struct rocegwdv_send_wr* bad;
  errno = rocegwdv_post_send(endpoint, &wr, &bad);
  if (errno != 0) die("send");
}

struct contender {
  struct ibv_qp* endpoint;
  uint64_t began_ns; /* its wait for the lock */
  uint64_t again_ns; /* when it tries again; 0: a request is under way */
  uint64_t tries, taken;
  uint32_t backoff;
  int holds;
};

static int locks(uint32_t count, double seconds, uint64_t backoff_ns, char** where) {
  open_device((size_t)count * 8, (int)count * 2 + 16);
  struct rocegwdv_peer* peer = make_peer(where[0], where[3]);
  const uint64_t address = strtoull(where[1], NULL, 0);
  const uint32_t rkey = (uint32_t)strtoul(where[2], NULL, 0);
  struct contender* contenders = calloc(count, sizeof *contenders);
  if (contenders == NULL) die("memory");
  /* A slot becomes free a moment after its completion. */
  for (uint32_t i = 0; i < count; ++i) contenders[i].endpoint = make_endpoint(4);
  uint64_t seed = 88172645463325252u, tries = 0, taken = 0, broken = 0;
  const uint64_t begin = now_ns();
  const uint64_t end = begin + (uint64_t)(seconds * 1e9);
  uint32_t under_way = 0;
  for (uint32_t i = 0; i < count; ++i) contenders[i].again_ns = contenders[i].began_ns = begin;
  for (int running = 1; running || under_way != 0;) {
    const uint64_t now = now_ns();
    running = now < end;
    for (uint32_t i = 0; i < count && running; ++i) {
      struct contender* contender = &contenders[i];
      if (contender->again_ns == 0 || contender->again_ns > now) continue;
      contender->again_ns = 0;
      ++contender->tries;
      struct ibv_send_wr take = {.wr_id = i, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
      take.wr.atomic.remote_addr = address;
      take.wr.atomic.rkey = rkey;
      take.wr.atomic.swap = i + 1;
      post(contender->endpoint, peer, take, (uint64_t)i * 8, 8);
      ++under_way;
    }
    struct ibv_wc done[32];
    const int got = ibv_poll_cq(cq, 32, done);
    for (int each = 0; each < got; ++each) {
      if (done[each].status != IBV_WC_SUCCESS) {
        fprintf(stderr, "endpoint_load: %s\n", ibv_wc_status_str(done[each].status));
        return 1;
      }
      const uint32_t i = (uint32_t)done[each].wr_id;
      struct contender* contender = &contenders[i];
      uint64_t found;
      memcpy(&found, memory + (size_t)i * 8, sizeof found);
      --under_way;
      if (contender->holds) {
        if (found != i + 1) ++broken;
        contender->holds = 0;
        contender->began_ns = contender->again_ns = now_ns();
        continue;
      }
      if (found != 0) {
        const uint64_t most = backoff_ns << contender->backoff;
        if (contender->backoff < 6) ++contender->backoff;
        contender->again_ns = now_ns() + (most != 0 ? next_random(&seed) % most : 0);
        continue;
      }
      add_latency(now_ns() - contender->began_ns);
      contender->backoff = 0;
      contender->holds = 1;
      ++contender->taken;
      struct ibv_send_wr release = {.wr_id = i};
      release.opcode = (enum ibv_wr_opcode)ROCEGWDV_WR_ATOMIC_SWAP;
      release.wr.atomic.remote_addr = address;
      release.wr.atomic.rkey = rkey;
      release.wr.atomic.compare_add = 0;
      post(contender->endpoint, peer, release, (uint64_t)i * 8, 8);
      ++under_way;
    }
  }
  const double took = (double)(now_ns() - begin) / 1e9;
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t i = 0; i < count; ++i) {
    tries += contenders[i].tries;
    taken += contenders[i].taken;
    if (contenders[i].taken < least) least = contenders[i].taken;
    if (contenders[i].taken > most) most = contenders[i].taken;
  }
  printf("{\"seconds\": %.3f, \"taken\": %llu, \"tries\": %llu, \"least\": %llu, \"most\": %llu, ",
         took, (unsigned long long)taken, (unsigned long long)tries, (unsigned long long)least,
         (unsigned long long)most);
  print_latencies();
  printf(", \"broken\": %llu}\n", (unsigned long long)broken);
  return broken != 0;
}

static int fan_out(uint32_t rounds, uint32_t bytes, char** where, int targets) {
  open_device(bytes < 8 ? 8 : bytes, targets + 16);
  struct rocegwdv_peer* peers[kMostTargets];
  for (int i = 0; i < targets; ++i) peers[i] = make_peer(where[0], where[3 + i]);
  const uint64_t address = strtoull(where[1], NULL, 0);
  const uint32_t rkey = (uint32_t)strtoul(where[2], NULL, 0);
  /* Slots become free a moment after their completions. */
  struct ibv_qp* endpoint = make_endpoint(2 * (uint32_t)targets + 2);
  const uint64_t begin = now_ns();
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint64_t start = now_ns();
    for (int i = 0; i < targets; ++i) {
      struct ibv_send_wr write = {.wr_id = (uint64_t)i, .opcode = IBV_WR_RDMA_WRITE};
      write.wr.rdma.remote_addr = address + (uint64_t)i * kPlace;
      write.wr.rdma.rkey = rkey;
      post(endpoint, peers[i], write, 0, bytes);
    }
    for (int left = targets; left > 0;) {
      struct ibv_wc done[32];
      const int got = ibv_poll_cq(cq, 32, done);
      for (int each = 0; each < got; ++each) {
        if (done[each].status == IBV_WC_SUCCESS) continue;
        fprintf(stderr, "endpoint_load: %s\n", ibv_wc_status_str(done[each].status));
        return 1;
      }
      left -= got > 0 ? got : 0;
    }
    add_latency(now_ns() - start);
  }
  printf("{\"seconds\": %.3f, \"rounds\": %u, ", (double)(now_ns() - begin) / 1e9, rounds);
  print_latencies();
  printf("}\n");
  return 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const int targets = argc - 7;
  if (strcmp(mode, "serve") == 0 && argc == 3 && atoi(argv[2]) > 0 && atoi(argv[2]) <= kMostTargets)
    serve(atoi(argv[2]));
  if (strcmp(mode, "locks") == 0 && argc >= 9)
    return locks((uint32_t)strtoul(argv[2], NULL, 0), strtod(argv[3], NULL),
                 (uint64_t)(strtod(argv[4], NULL) * 1000), argv + 5);
  if (strcmp(mode, "fan_out") == 0 && targets > 0 && targets <= kMostTargets)
    return fan_out((uint32_t)strtoul(argv[2], NULL, 0), (uint32_t)strtoul(argv[3], NULL, 0),
                   argv + 4, targets);
  fprintf(stderr,
          "usage: endpoint_load serve TARGETS |\n"
          "                     locks CONTENDERS SECONDS BACKOFF_US ADDRESS VA RKEY NUMBER |\n"
          "                     fan_out ROUNDS BYTES ADDRESS VA RKEY NUMBER ...\n");
  return 2;
}
