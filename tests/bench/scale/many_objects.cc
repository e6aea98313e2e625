// SPDX-License-Identifier: Apache-2.0
// A program with very many queue pairs, each connected to itself, and memory regions. It says so
// when they are all there, and keeps them until it is killed.
//
// Usage: many_objects QUEUE_PAIRS REGIONS
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kGidIndex = 0;
constexpr uint32_t kDepth = 16;
constexpr size_t kRegion = 4096;

[[noreturn]] void Fail(const char* what, int number) {
  std::printf("many_objects: %s %d: %s\n", what, number, std::strerror(errno));
  std::exit(1);
}

bool Connect(ibv_qp* qp, const ibv_gid& gid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    return false;
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.sgid_index = kGidIndex;
  attr.ah_attr.grh.hop_limit = 64;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    return false;
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: many_objects QUEUE_PAIRS REGIONS\n");
    return 2;
  }
  const int queue_pairs = std::atoi(argv[1]);
  const int regions = std::atoi(argv[2]);
  ibv_device** const devices = ibv_get_device_list(nullptr);
  ibv_context* const context =
      devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (context == nullptr) Fail("device", 0);
  ibv_gid gid{};
  ibv_pd* const pd = ibv_alloc_pd(context);
  ibv_cq* const cq = ibv_create_cq(context, kDepth, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr || ibv_query_gid(context, 1, kGidIndex, &gid) != 0)
    Fail("context", 0);
  for (int i = 0; i < queue_pairs; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {kDepth, kDepth, 1, 1, 0};
    ibv_qp* const qp = ibv_create_qp(pd, &init);
    if (qp == nullptr || !Connect(qp, gid)) Fail("queue pair", i);
  }
  std::vector<char> memory(kRegion);
  for (int i = 0; i < regions; ++i) {
    if (ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE) == nullptr)
      Fail("region", i);
  }
  std::printf("all there\n");
  std::fflush(stdout);
  pause();
}
