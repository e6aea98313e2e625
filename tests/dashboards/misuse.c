// SPDX-License-Identifier: Apache-2.0
// A verbs program with the faults that programs have, for counters that stay at 0 with good ones.
// Usage: misuse overrun GID_INDEX   more completions than its completion queue has room for
//        misuse vanish GID_INDEX    writes from registered memory that it has unmapped
//        misuse nobody GID_INDEX    connects queue pairs to addresses of its network that nobody
//        has misuse scribble GID_INDEX  writes nonsense over memory that it shares with the gateway
// Exit status 0: it has done so, whatever became of it.
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kLength = 4096, kRequests = 64, kNobodies = 16, kFirstNobody = 100 };

static void Check(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static struct ibv_qp* NewQp(struct ibv_pd* pd, struct ibv_cq* cq) {
  struct ibv_qp_init_attr init = {
      .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {kRequests, 1, 1, 1, 0}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  Check(qp != NULL, "ibv_create_qp");
  return qp;
}

static void Connect(struct ibv_qp* qp, uint32_t peer, const union ibv_gid* gid, int gid_index) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  Check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
        "INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = *gid;
  attr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.port_num = 1;
  Check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 10;
  attr.retry_cnt = 3;
  attr.rnr_retry = 3;
  attr.max_rd_atomic = 1;
  Check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "RTS");
}

// One after the other: each waits for an answer that does not come.
static void ConnectToNobody(struct ibv_pd* pd, struct ibv_cq* cq, union ibv_gid gid,
                            int gid_index) {
  for (int i = 0; i < kNobodies; ++i) {
    struct ibv_qp* qp = NewQp(pd, cq);
    gid.raw[15] = (uint8_t)(kFirstNobody + i);
    Connect(qp, 1, &gid, gid_index);
    ibv_destroy_qp(qp);
  }
}

// Shared memory files of the gateway are mapped under its name. All bits are set, so that every
// doorbell rings: the gateway does not look at queues that rest.
static void Scribble(void) {
  FILE* maps = fopen("/proc/self/maps", "re");
  char line[512];
  Check(maps != NULL, "maps");
  while (fgets(line, sizeof line, maps) != NULL) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char access[8] = "";
    if (strstr(line, "memfd:") == NULL || sscanf(line, "%lx-%lx %7s", &begin, &end, access) != 3)
      continue;
    if (strcmp(access, "rw-s") == 0) memset((void*)begin, 0xFF, end - begin);
  }
  fclose(maps);
}

// Writes to every eventfd of the process, among them those that wake the workers. The library does
// not wake a worker for queues that look full, and a worker that sleeps does not look at them.
static void WakeWorkers(void) {
  enum { kMostDescriptors = 1024 };
  const uint64_t one = 1;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    char path[64];
    char target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "[eventfd]") != NULL)
      Check(write(fd, &one, sizeof one) == sizeof one, "eventfd");
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int gid_index = argc > 2 ? atoi(argv[2]) : 0;
  struct ibv_device** devices = ibv_get_device_list(NULL);
  Check(devices != NULL && devices[0] != NULL, "no device");
  struct ibv_context* context = ibv_open_device(devices[0]);
  Check(context != NULL, "ibv_open_device");
  struct ibv_pd* pd = ibv_alloc_pd(context);
  const int overrun = strcmp(argv[1], "overrun") == 0;
  struct ibv_cq* cq = ibv_create_cq(context, overrun ? 1 : 2 * kRequests, NULL, NULL, 0);
  Check(pd != NULL && cq != NULL, "ibv_create_cq");
  union ibv_gid gid;
  Check(ibv_query_gid(context, 1, gid_index, &gid) == 0, "ibv_query_gid");
  if (strcmp(argv[1], "nobody") == 0) ConnectToNobody(pd, cq, gid, gid_index);
  struct ibv_qp* from = NewQp(pd, cq);
  struct ibv_qp* to = NewQp(pd, cq);
  Connect(from, to->qp_num, &gid, gid_index);
  Connect(to, from->qp_num, &gid, gid_index);
  char* source = mmap(NULL, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* target = mmap(NULL, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct ibv_mr* local = ibv_reg_mr(pd, source, kLength, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_mr* remote =
      ibv_reg_mr(pd, target, kLength, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  Check(local != NULL && remote != NULL, "ibv_reg_mr");
  struct ibv_sge piece = {(uintptr_t)source, kLength, local->lkey};
  struct ibv_send_wr request = {.sg_list = &piece,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = (uintptr_t)target;
  request.wr.rdma.rkey = remote->rkey;
  struct ibv_send_wr* bad = NULL;
  if (strcmp(argv[1], "vanish") == 0) munmap(source, kLength);
  if (strcmp(argv[1], "scribble") == 0) Scribble();
  for (int i = 0; i < (overrun ? kRequests : 1); ++i) ibv_post_send(from, &request, &bad);
  if (strcmp(argv[1], "scribble") == 0) WakeWorkers();
  puts("done");
  fflush(stdout);
  // Until it is killed: what becomes of it is seen from outside.
  for (;;) {
    struct ibv_wc completion;
    if (!overrun && ibv_poll_cq(cq, 1, &completion) == 1) printf("status %d\n", completion.status);
    fflush(stdout);
  }
}
