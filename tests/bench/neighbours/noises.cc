// SPDX-License-Identifier: Apache-2.0
// What badly behaved programs do, with nothing but verbs: the kinds of bench_noise (noises.cc
// there), and one that a worker alone cannot show: memory that never answers.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/bench/neighbours/talk.h"

namespace rocegw::bench {
namespace {

// Requests of one kind, as many as fit, for ever.
void Flood(const Talk& talk, uint32_t depth, ibv_send_wr request, uint32_t length) {
  const ibv_sge piece = talk.Piece(length);
  for (size_t qp = 0; qp < talk.size(); ++qp) {
    for (uint32_t i = 0; i < depth; ++i) {
      request.wr_id = qp;
      talk.Post(qp, request, piece);
    }
  }
  while (!Ended()) {
    talk.Wait([&](const ibv_wc& wc) {
      request.wr_id = wc.wr_id;
      talk.Post(wc.wr_id, request, piece);
    });
  }
}

void FloodWith(const Server& server, size_t qps, uint32_t depth, ibv_wr_opcode opcode,
               uint32_t length) {
  const Talk talk(server, qps, depth, length);
  Flood(talk, depth, talk.Request(opcode, length), length);
}

void ManyQps(const Server& server) { FloodWith(server, 1024, 4, IBV_WR_RDMA_WRITE, 4096); }
void TinyWrites(const Server& server) { FloodWith(server, 16, 256, IBV_WR_RDMA_WRITE, 8); }
void BulkWrites(const Server& server) { FloodWith(server, 16, 4, IBV_WR_RDMA_WRITE, 1 << 20); }
// Each rings for one request, on many queue pairs.
void DoorbellSpam(const Server& server) { FloodWith(server, 512, 1, IBV_WR_RDMA_WRITE, 8); }
void ReadAmplification(const Server& server) {
  FloodWith(server, 32, 4, IBV_WR_RDMA_READ, 1 << 20);
}

// A key that is nobody's; the queue pair is taken from its error and does it again.
void ErrorStorm(const Server& server) {
  const Talk talk(server, 16, 4, 4096);
  ibv_send_wr request = talk.Request(IBV_WR_RDMA_WRITE, 4096);
  request.wr.rdma.rkey ^= 0x5A5A00;
  const auto post = [&](size_t qp) {
    request.wr_id = qp;
    talk.Post(qp, request, talk.Piece(4096));
  };
  for (size_t qp = 0; qp < talk.size(); ++qp) post(qp);
  while (!Ended()) {
    talk.Wait([&](const ibv_wc& wc) {
      talk.Revive(wc.wr_id);
      post(wc.wr_id);
    });
  }
}

// Nobody posts a receive.
void RnrStorm(const Server& server) { FloodWith(server, 64, 4, IBV_WR_SEND, 4096); }

void AtomicsOneLine(const Server& server) {
  const Talk talk(server, 32, 8, 4096);
  ibv_send_wr request = talk.Request(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
  const auto rdma = request.wr.rdma;
  request.wr.atomic.remote_addr = rdma.remote_addr;
  request.wr.atomic.rkey = rdma.rkey;
  request.wr.atomic.compare_add = 1;
  Flood(talk, 8, request, 8);
}

void ControlStorm(const Server& server) {
  const Talk talk(server, 1, 1, 4096);
  while (!Ended()) {
    ibv_mr* const mr = ibv_reg_mr(talk.pd(), talk.memory(), 4096, IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = talk.cq();
    init.qp_type = IBV_QPT_RC;
    init.cap = {1, 1, 1, 1, 0};
    ibv_qp* const qp = ibv_create_qp(talk.pd(), &init);
    if (mr == nullptr || qp == nullptr) Fail("ibv_create_qp");
    if (ibv_destroy_qp(qp) != 0 || ibv_dereg_mr(mr) != 0) Fail("ibv_destroy_qp");
  }
}

// Pages that are missing, and whoever touches them waits for a handler that there is not.
void MemoryThatNeverAnswers(const Server& server) {
  constexpr size_t kBytes = size_t{1} << 20;
  const Talk talk(server, 16, 8, 4096);
  const auto missing = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (missing < 0 || ioctl(missing, UFFDIO_API, &api) != 0) Fail("userfaultfd");
  void* const at =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) Fail("mmap");
  uffdio_register range{.range = {reinterpret_cast<uint64_t>(at), kBytes},
                        .mode = UFFDIO_REGISTER_MODE_MISSING,
                        .ioctls = 0};
  if (ioctl(missing, UFFDIO_REGISTER, &range) != 0) Fail("UFFDIO_REGISTER");
  ibv_mr* const mr = ibv_reg_mr(talk.pd(), at, kBytes, IBV_ACCESS_LOCAL_WRITE);
  if (mr == nullptr) Fail("ibv_reg_mr");
  ibv_send_wr request = talk.Request(IBV_WR_RDMA_WRITE, 4096);
  const ibv_sge piece{reinterpret_cast<uint64_t>(at), 4096, mr->lkey};
  for (size_t qp = 0; qp < talk.size(); ++qp)
    for (int i = 0; i < 8; ++i) talk.Post(qp, request, piece);
  while (!Ended()) talk.Wait([](const ibv_wc&) {});
  // Nothing of it will be done.
  _exit(0);
}

struct Kind {
  const char* name;
  void (*make)(const Server& server);
};
constexpr Kind kKinds[] = {
    {"many_qps", ManyQps},
    {"tiny_writes", TinyWrites},
    {"bulk_writes", BulkWrites},
    {"error_storm", ErrorStorm},
    {"doorbell_spam", DoorbellSpam},
    {"rnr_storm", RnrStorm},
    {"atomics_one_line", AtomicsOneLine},
    {"read_amplification", ReadAmplification},
    {"control_storm", ControlStorm},
    {"blocked_memory", MemoryThatNeverAnswers},
};

}  // namespace

bool MakeNoise(const char* kind, const Server& server) {
  for (const Kind& known : kKinds) {
    if (std::strcmp(known.name, kind) != 0) continue;
    known.make(server);
    return true;
  }
  return false;
}

}  // namespace rocegw::bench
