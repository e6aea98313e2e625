// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/neighbours/missing_memory.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/connected.h"
#include "tests/bench/neighbours/talk.h"

namespace rocegw::bench {

MissingMemory::MissingMemory() {
  const auto faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) Fail("userfaultfd");
  at_ = mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at_ == MAP_FAILED) Fail("mmap");
  uffdio_register range{.range = {reinterpret_cast<uint64_t>(at_), size()},
                        .mode = UFFDIO_REGISTER_MODE_MISSING,
                        .ioctls = 0};
  if (ioctl(faults, UFFDIO_REGISTER, &range) != 0) Fail("UFFDIO_REGISTER");
}

void LeaveWithMissingMemory(const MissingMemory& missing, int gid_index) {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  ibv_context* const context =
      devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  ibv_gid gid;
  if (context == nullptr || ibv_query_gid(context, 1, gid_index, &gid) != 0) _exit(1);
  ibv_pd* const pd = ibv_alloc_pd(context);
  ibv_cq* const cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) _exit(1);
  ibv_mr* const mr = ibv_reg_mr(pd, missing.at(), missing.size(),
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {8, 1, 1, 1, 0};
  ibv_qp* const qp = ibv_create_qp(pd, &init);
  if (mr == nullptr || qp == nullptr ||
      !ConnectToItself(qp, gid, static_cast<uint8_t>(gid_index), IBV_MTU_1024)) {
    _exit(1);
  }
  ibv_sge piece{reinterpret_cast<uint64_t>(missing.at()), 4096, mr->lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = piece.addr + 65536;
  request.wr.rdma.rkey = mr->rkey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qp, &request, &bad) != 0) _exit(1);
  usleep(20000);
  _exit(0);
}

}  // namespace rocegw::bench
