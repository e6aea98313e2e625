/* SPDX-License-Identifier: Apache-2.0
 *
 * States, shared receive queues and the service without answers of endpoints, by real processes. A
 * program that finds something else than it should says so and ends with 1.
 *
 *   endpoint_check serve COUNT                 two members of a group share a receive queue; one
 *                                              drains and is destroyed in the middle
 *   endpoint_check send COUNT ADDRESS NUMBER   sends so many messages; suspends in the middle, and
 *                                              with WAIT in the environment until SIGUSR1
 *   endpoint_check fail ADDRESS NUMBER         a request fails and suspends; the next one arrives
 *   endpoint_check listen                      hears messages that nothing answers
 *   endpoint_check cast COUNT ADDRESS NUMBER   sends them
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rocegw/rocegwdv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY = 0x524f4345, DEPTH = 64, SIZE = 8192, MESSAGE = 64, PAUSE_MS = 100, MOST = 1 << 20 };

#define CHECK(holds)                                                                  \
  do {                                                                                \
    if (!(holds)) {                                                                   \
      fprintf(stderr, "endpoint_check: line %d: not so: %s (%s)\n", __LINE__, #holds, \
              strerror(errno));                                                       \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

struct message {
  uint64_t number;
  uint64_t last; /* not 0: number of all messages before */
  char filler[MESSAGE - 16];
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char bytes[2 * DEPTH][SIZE];
static unsigned char seen[MOST];

static void open_all(void) {
  int count = 0;
  struct ibv_device **list = ibv_get_device_list(&count);
  for (int i = 0; i < count && context == NULL; ++i)
    if (rocegwdv_is_supported(list[i])) context = ibv_open_device(list[i]);
  if (list != NULL) ibv_free_device_list(list);
  CHECK(context != NULL);
  CHECK(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
  pd = ibv_alloc_pd(context);
  CHECK(pd != NULL);
  mr = ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
  CHECK(mr != NULL);
}

static void close_all(void) {
  CHECK(ibv_dereg_mr(mr) == 0);
  CHECK(ibv_dealloc_pd(pd) == 0);
  CHECK(ibv_close_device(context) == 0);
}

static int sgid_index(void) {
  static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
  union ibv_gid gid;
  for (int i = 0; ibv_query_gid(context, 1, i, &gid) == 0; ++i)
    if (memcmp(gid.raw, mapped, sizeof(mapped)) == 0) return i;
  return 0;
}

static void announce(uint32_t number) {
  union ibv_gid gid;
  char address[INET6_ADDRSTRLEN];
  CHECK(ibv_query_gid(context, 1, sgid_index(), &gid) == 0);
  inet_ntop(AF_INET6, gid.raw, address, sizeof(address));
  printf("send to %s %u\n", address, number);
  fflush(stdout);
}

static struct rocegwdv_peer *find(const char *address, const char *number, uint32_t key) {
  struct rocegwdv_peer_attr to = {.ep_num = (uint32_t)strtoul(number, NULL, 0), .key = key};
  to.sgid_index = (uint8_t)sgid_index();
  CHECK(inet_pton(AF_INET6, address, to.gid.raw) == 1);
  struct rocegwdv_peer *peer = rocegwdv_create_peer(pd, &to, sizeof(to));
  CHECK(peer != NULL);
  return peer;
}

static struct rocegwdv_ep_init_attr attributes(struct ibv_cq *cq, uint32_t mode) {
  struct rocegwdv_ep_init_attr attr = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
      .sq_sig_all = 1,
      .key = KEY,
      .service_mode = mode,
  };
  return attr;
}

static struct ibv_qp *make(struct rocegwdv_ep_init_attr attr) {
  struct ibv_qp *ep = rocegwdv_create_ep(pd, &attr, sizeof(attr));
  CHECK(ep != NULL);
  return ep;
}

static struct ibv_cq *make_cq(void) {
  struct ibv_cq *cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
  CHECK(cq != NULL);
  return cq;
}

static struct rocegwdv_ep_attr query(struct ibv_qp *ep) {
  struct rocegwdv_ep_attr attr;
  CHECK(rocegwdv_query_ep(ep, &attr, sizeof(attr)) == 0);
  return attr;
}

/* Takes an event, which is the one that is expected. Returns 0 if there is none. */
static int take_event(struct ibv_qp *ep, enum ibv_event_type expected) {
  struct ibv_async_event event;
  if (ibv_get_async_event(context, &event) != 0) return 0;
  CHECK(event.event_type == expected);
  CHECK(event.element.qp == ep);
  ibv_ack_async_event(&event);
  return 1;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct ibv_sge piece(uint64_t id, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)bytes[id % (2 * DEPTH)], length, mr->lkey};
  return sge;
}

static void post(struct ibv_qp *ep, struct rocegwdv_peer *peer, uint64_t id, uint32_t length,
                 uint64_t last) {
  struct message *message = (struct message *)bytes[id % DEPTH];
  memset(message, (int)id, sizeof(*message));
  message->number = id;
  message->last = last;
  struct ibv_sge sge = piece(id % DEPTH, length);
  struct rocegwdv_send_wr wr = {.peer = peer};
  wr.wr.wr_id = id;
  wr.wr.opcode = IBV_WR_SEND;
  wr.wr.sg_list = &sge;
  wr.wr.num_sge = 1;
  struct rocegwdv_send_wr *bad;
  errno = rocegwdv_post_send(ep, &wr, &bad);
  CHECK(errno == 0);
}

/* Number of completions of sends that are there; all are successful. */
static uint64_t completed(struct ibv_cq *cq) {
  struct ibv_wc wc;
  uint64_t count = 0;
  for (; ibv_poll_cq(cq, 1, &wc) == 1; ++count) CHECK(wc.status == IBV_WC_SUCCESS);
  return count;
}

static void expect_no_completion(struct ibv_cq *cq) {
  for (const int64_t end = now_ms() + PAUSE_MS; now_ms() < end;) CHECK(completed(cq) == 0);
}

/* Checks a message that has come, and counts it. Returns how many times it has come. */
static int check(const char *at, uint32_t length) {
  const struct message *message = (const struct message *)at;
  CHECK(length == sizeof(*message) && message->number < MOST);
  for (size_t i = 0; i < sizeof(message->filler); ++i)
    CHECK(message->filler[i] == (char)message->number);
  return ++seen[message->number];
}

static void post_shared(struct ibv_srq *srq, uint64_t id) {
  struct ibv_sge sge = piece(id, SIZE);
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr *bad;
  errno = ibv_post_srq_recv(srq, &wr, &bad);
  CHECK(errno == 0);
}

static int serve(uint64_t count) {
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 2 * DEPTH, .max_sge = 1}};
  struct ibv_srq *srq = ibv_create_srq(pd, &init);
  CHECK(srq != NULL);
  struct rocegwdv_group_init_attr all = {
      .key = KEY, .dispatch = ROCEGWDV_DISPATCH_ROUND_ROBIN, .srq = srq};
  struct rocegwdv_group *group = rocegwdv_create_group(pd, &all, sizeof(all));
  CHECK(group != NULL);
  struct ibv_cq *cq = make_cq();
  struct rocegwdv_ep_init_attr attr = attributes(cq, ROCEGWDV_SERVICE_UNORDERED);
  attr.group = group;
  attr.srq = srq;
  struct ibv_qp *members[2] = {make(attr), make(attr)};
  for (uint64_t id = 0; id < 2 * DEPTH; ++id) post_shared(srq, id);
  announce(group->group_num);
  uint64_t got = 0;
  uint64_t of[2] = {0, 0};
  int drains = 0;
  while (got < count) {
    struct ibv_wc wc;
    const int polled = ibv_poll_cq(cq, 1, &wc);
    CHECK(polled >= 0);
    if (polled == 1) {
      CHECK(wc.status == IBV_WC_SUCCESS);
      CHECK(check(bytes[wc.wr_id], wc.byte_len) == 1);
      const int member = members[0] != NULL && wc.qp_num == members[0]->qp_num ? 0 : 1;
      ++of[member];
      ++got;
      post_shared(srq, wc.wr_id);
      continue;
    }
    if (!drains && got >= count / 2) {
      drains = 1;
      CHECK(rocegwdv_modify_ep(members[0], ROCEGWDV_EP_DRAINING, ROCEGWDV_EP_NOTIFY) == 0);
    } else if (drains && members[0] != NULL && take_event(members[0], IBV_EVENT_SQ_DRAINED)) {
      const struct rocegwdv_ep_attr known = query(members[0]);
      CHECK(known.state == ROCEGWDV_EP_DRAINING && known.messages == 0);
      /* What came before the event is there. */
      for (; ibv_poll_cq(cq, 1, &wc) == 1; ++got) {
        CHECK(wc.status == IBV_WC_SUCCESS && check(bytes[wc.wr_id], wc.byte_len) == 1);
        post_shared(srq, wc.wr_id);
      }
      CHECK(ibv_destroy_qp(members[0]) == 0);
      members[0] = NULL;
      printf("a member has drained after %llu messages\n", (unsigned long long)got);
      fflush(stdout);
    }
  }
  CHECK(of[0] != 0 && of[1] != 0);
  printf("got %llu messages, each once\n", (unsigned long long)got);
  fflush(stdout);
  for (int i = 0; i < 2; ++i)
    if (members[i] != NULL) CHECK(ibv_destroy_qp(members[i]) == 0);
  CHECK(rocegwdv_destroy_group(group) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  CHECK(ibv_destroy_srq(srq) == 0);
  return 0;
}

/* Waits for SIGUSR1, which main has blocked. */
static void wait_for_signal(void) {
  sigset_t set;
  int number;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigwait(&set, &number) == 0);
}

static int send_suspended(uint64_t count, const char *address, const char *number) {
  struct ibv_cq *cq = make_cq();
  struct ibv_qp *ep = make(attributes(cq, ROCEGWDV_SERVICE_UNORDERED));
  struct rocegwdv_peer *peer = find(address, number, KEY);
  uint64_t posted = 0;
  uint64_t done = 0;
  while (done < count) {
    while (posted < count && posted - done < DEPTH / 2) {
      post(ep, peer, posted++, MESSAGE, 0);
      if (posted != count / 2) continue;
      CHECK(rocegwdv_modify_ep(ep, ROCEGWDV_EP_SUSPENDED, ROCEGWDV_EP_NOTIFY) == 0);
      while (!take_event(ep, IBV_EVENT_SQ_DRAINED)) done += completed(cq);
      done += completed(cq);
      const uint64_t left = posted - done;
      for (int i = 0; i < 8; ++i) post(ep, peer, posted++, MESSAGE, 0);
      expect_no_completion(cq);
      struct rocegwdv_ep_attr known = query(ep);
      CHECK(known.state == ROCEGWDV_EP_SUSPENDED && known.requests == 0 && known.failures == 0);
      printf("suspended with %llu requests that have not begun\n", (unsigned long long)left + 8);
      fflush(stdout);
      if (getenv("WAIT") != NULL) {
        wait_for_signal();
        known = query(ep);
        CHECK(known.state == ROCEGWDV_EP_SUSPENDED);
        expect_no_completion(cq);
      }
      CHECK(rocegwdv_modify_ep(ep, ROCEGWDV_EP_READY, 0) == 0);
    }
    done += completed(cq);
  }
  CHECK(done == posted);
  printf("sent %llu messages\n", (unsigned long long)done);
  CHECK(rocegwdv_destroy_peer(peer) == 0);
  CHECK(ibv_destroy_qp(ep) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  return 0;
}

static int fail_once(const char *address, const char *number) {
  struct ibv_cq *cq = make_cq();
  struct rocegwdv_ep_init_attr attr = attributes(cq, ROCEGWDV_SERVICE_UNORDERED);
  attr.on_failure = ROCEGWDV_EP_SUSPEND;
  struct ibv_qp *ep = make(attr);
  struct rocegwdv_peer *wrong = find(address, number, KEY + 1);
  struct rocegwdv_peer *peer = find(address, number, KEY);
  struct ibv_wc wc;
  post(ep, wrong, 0, MESSAGE, 0);
  while (ibv_poll_cq(cq, 1, &wc) != 1) continue;
  CHECK(wc.status == IBV_WC_REM_ACCESS_ERR);
  while (!take_event(ep, IBV_EVENT_QP_REQ_ERR)) continue;
  while (!take_event(ep, IBV_EVENT_SQ_DRAINED)) continue;
  const struct rocegwdv_ep_attr known = query(ep);
  CHECK(known.state == ROCEGWDV_EP_EXCEPTION && known.on_failure == ROCEGWDV_EP_SUSPEND);
  CHECK(known.failures == 1);
  post(ep, peer, 1, MESSAGE, 1);
  expect_no_completion(cq);
  CHECK(rocegwdv_modify_ep(ep, ROCEGWDV_EP_READY, 0) == 0);
  while (completed(cq) != 1) continue;
  CHECK(query(ep).state == ROCEGWDV_EP_READY);
  printf("went on after an exception\n");
  CHECK(rocegwdv_destroy_peer(wrong) == 0);
  CHECK(rocegwdv_destroy_peer(peer) == 0);
  CHECK(ibv_destroy_qp(ep) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  return 0;
}

static void post_own(struct ibv_qp *ep, uint64_t id) {
  struct ibv_sge sge = piece(id, SIZE);
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr *bad;
  errno = ibv_post_recv(ep, &wr, &bad);
  CHECK(errno == 0);
}

static int hear(void) {
  struct ibv_cq *cq = make_cq();
  struct ibv_qp *ep = make(attributes(cq, ROCEGWDV_SERVICE_BY_INITIATOR));
  for (uint64_t id = 0; id < DEPTH; ++id) post_own(ep, id);
  announce(ep->qp_num);
  uint64_t heard = 0;
  uint64_t all = 0;
  while (all == 0) {
    struct ibv_wc wc;
    if (ibv_poll_cq(cq, 1, &wc) != 1) continue;
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(check(bytes[wc.wr_id], wc.byte_len) == 1);
    all = ((struct message *)bytes[wc.wr_id])->last;
    if (all == 0) ++heard;
    post_own(ep, wc.wr_id);
  }
  printf("heard %llu of %llu messages\n", (unsigned long long)heard, (unsigned long long)all);
  CHECK(ibv_destroy_qp(ep) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  return 0;
}

static int cast(uint64_t count, const char *address, const char *number) {
  struct ibv_cq *cq = make_cq();
  struct ibv_qp *ep = make(attributes(cq, ROCEGWDV_SERVICE_UNACKNOWLEDGED));
  struct ibv_qp *reliable = make(attributes(cq, ROCEGWDV_SERVICE_BY_INITIATOR));
  struct rocegwdv_peer *peer = find(address, number, KEY);
  uint64_t done = 0;
  for (uint64_t id = 0; id < count; ++id) {
    post(ep, peer, id, MESSAGE, 0);
    while (id + 1 - done >= 8) done += completed(cq);
  }
  while (done < count) done += completed(cq);
  /* More than a frame. */
  struct ibv_wc wc;
  post(ep, peer, count, SIZE, 0);
  while (ibv_poll_cq(cq, 1, &wc) != 1) continue;
  CHECK(wc.status == IBV_WC_LOC_LEN_ERR);
  post(reliable, peer, count, MESSAGE, count);
  while (completed(cq) != 1) continue;
  printf("cast %llu messages\n", (unsigned long long)count);
  CHECK(rocegwdv_destroy_peer(peer) == 0);
  CHECK(ibv_destroy_qp(ep) == 0 && ibv_destroy_qp(reliable) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  return 0;
}

int main(int argc, char **argv) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const char *role = argc > 1 ? argv[1] : "";
  int result = 2;
  open_all();
  if (argc == 3 && strcmp(role, "serve") == 0) result = serve(strtoull(argv[2], NULL, 0));
  if (argc == 5 && strcmp(role, "send") == 0)
    result = send_suspended(strtoull(argv[2], NULL, 0), argv[3], argv[4]);
  if (argc == 4 && strcmp(role, "fail") == 0) result = fail_once(argv[2], argv[3]);
  if (argc == 2 && strcmp(role, "listen") == 0) result = hear();
  if (argc == 5 && strcmp(role, "cast") == 0)
    result = cast(strtoull(argv[2], NULL, 0), argv[3], argv[4]);
  close_all();
  if (result == 2) fprintf(stderr, "endpoint_check: wrong arguments\n");
  return result;
}
