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

#include "tests/bench/connected.h"

namespace {

constexpr int kGidIndex = 1;  // IPv4; index 0 is the link-local address
constexpr uint32_t kDepth = 16;
constexpr size_t kRegion = 4096;

[[noreturn]] void Fail(const char* what, int number) {
  std::printf("many_objects: %s %d: %s\n", what, number, std::strerror(errno));
  std::exit(1);
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
    if (qp == nullptr || !ConnectToItself(qp, gid, kGidIndex, IBV_MTU_1024)) Fail("queue pair", i);
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
