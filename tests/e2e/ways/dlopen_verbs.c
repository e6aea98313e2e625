/* SPDX-License-Identifier: Apache-2.0
 *
 * dlopen_verbs symbol|version|plugin FILE: gets the verbs out of FILE by itself (dlsym, dlvsym, or
 * a plug-in loaded with RTLD_DEEPBIND that is linked with them) and writes from one queue pair to
 * another one over the first device. Prints the device's name and "ok" when every byte has arrived.
 * It is linked with nothing but the C library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/ways/verbs_table.h"

enum { kSize = 100000, kPolls = 200000000 };

static struct verbs_table verbs;

static void* must(void* pointer, const char* what) {
  if (pointer == NULL) {
    fprintf(stderr, "dlopen_verbs: %s: %s\n", what, dlerror());
    exit(1);
  }
  return pointer;
}

static void expect(int good, const char* what) {
  if (!good) {
    fprintf(stderr, "dlopen_verbs: %s failed\n", what);
    exit(1);
  }
}

static void load(const char* way, const char* file) {
  if (strcmp(way, "plugin") == 0) {
    void* library = must(dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND), file);
    void (*fill)(struct verbs_table*);
    *(void**)&fill = must(dlsym(library, "fill_verbs_table"), "fill_verbs_table");
    fill(&verbs);
    return;
  }
  void* library = must(dlopen(file, RTLD_NOW | RTLD_LOCAL), file);
  const int versioned = strcmp(way, "version") == 0;
#define VERBS_LOAD(name, version) \
  *(void**)&verbs.name##_ =       \
      must(versioned ? dlvsym(library, #name, version) : dlsym(library, #name), #name);
  VERBS_FUNCTIONS(VERBS_LOAD)
#undef VERBS_LOAD
}

static void connect_to(struct ibv_qp* qp, uint32_t peer, const union ibv_gid* gid) {
  struct ibv_qp_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  expect(verbs.ibv_modify_qp_(
             qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = *gid;
  attr.ah_attr.grh.hop_limit = 64;
  expect(verbs.ibv_modify_qp_(qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  expect(verbs.ibv_modify_qp_(qp, &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: dlopen_verbs symbol|version|plugin FILE\n");
    return 2;
  }
  load(argv[1], argv[2]);
  expect(verbs.ibv_fork_init_() == 0, "ibv_fork_init");
  int count = 0;
  struct ibv_device** devices = verbs.ibv_get_device_list_(&count);
  expect(devices != NULL && count > 0, "looking for a device");
  struct ibv_context* context = verbs.ibv_open_device_(devices[0]);
  expect(context != NULL, "ibv_open_device");
  printf("%s\n", verbs.ibv_get_device_name_(devices[0]));
  verbs.ibv_free_device_list_(devices);

  union ibv_gid gid;
  expect(verbs.ibv_query_gid_(context, 1, 0, &gid) == 0, "ibv_query_gid");
  struct ibv_pd* pd = verbs.ibv_alloc_pd_(context);
  char* memory = malloc(2 * kSize);
  expect(pd != NULL && memory != NULL, "ibv_alloc_pd");
  for (int i = 0; i < kSize; ++i) memory[i] = (char)(i * 7 + 1);
  memset(memory + kSize, 0, kSize);
  struct ibv_mr* mr =
      verbs.ibv_reg_mr_(pd, memory, 2 * kSize, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  struct ibv_cq* cq = verbs.ibv_create_cq_(context, 8, NULL, NULL, 0);
  expect(mr != NULL && cq != NULL, "ibv_reg_mr, ibv_create_cq");
  struct ibv_qp_init_attr init;
  memset(&init, 0, sizeof(init));
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = init.cap.max_recv_wr = 4;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  struct ibv_qp* from = verbs.ibv_create_qp_(pd, &init);
  struct ibv_qp* to = verbs.ibv_create_qp_(pd, &init);
  expect(from != NULL && to != NULL, "ibv_create_qp");
  connect_to(to, from->qp_num, &gid);
  connect_to(from, to->qp_num, &gid);

  struct ibv_sge piece = {(uintptr_t)memory, kSize, mr->lkey};
  struct ibv_send_wr request, *bad;
  memset(&request, 0, sizeof(request));
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = (uintptr_t)memory + kSize;
  request.wr.rdma.rkey = mr->rkey;
  expect(ibv_post_send(from, &request, &bad) == 0, "ibv_post_send");
  struct ibv_wc done;
  int got = 0;
  for (long i = 0; i < kPolls && got == 0; ++i) got = ibv_poll_cq(cq, 1, &done);
  expect(got == 1, "waiting for the completion");
  expect(done.status == IBV_WC_SUCCESS, verbs.ibv_wc_status_str_(done.status));
  expect(memcmp(memory, memory + kSize, kSize) == 0, "comparing what was written");
  expect(verbs.ibv_destroy_qp_(from) == 0 && verbs.ibv_destroy_qp_(to) == 0 &&
             verbs.ibv_destroy_cq_(cq) == 0 && verbs.ibv_dereg_mr_(mr) == 0 &&
             verbs.ibv_dealloc_pd_(pd) == 0 && verbs.ibv_close_device_(context) == 0,
         "taking it down");
  free(memory);
  printf("ok\n");
  return 0;
}
