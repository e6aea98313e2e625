// SPDX-License-Identifier: Apache-2.0
// What badly behaved programs do, with nothing but verbs: the kinds of bench_noise (noises.cc
// there), and one that a worker alone cannot show: memory that never answers.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/bench/neighbours/missing_memory.h"
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

// Floods from memory that never answers.
void BlockedMemory(const Server& server) {
  const Talk talk(server, 16, 8, 4096);
  const MissingMemory missing;
  ibv_mr* const mr = ibv_reg_mr(talk.pd(), missing.at(), missing.size(), IBV_ACCESS_LOCAL_WRITE);
  if (mr == nullptr) Fail("ibv_reg_mr");
  ibv_send_wr request = talk.Request(IBV_WR_RDMA_WRITE, 4096);
  const ibv_sge piece{reinterpret_cast<uint64_t>(missing.at()), 4096, mr->lkey};
  for (size_t qp = 0; qp < talk.size(); ++qp)
    for (int i = 0; i < 8; ++i) talk.Post(qp, request, piece);
  while (!Ended()) talk.Wait([](const ibv_wc&) {});
  // Nothing of it will be done.
  _exit(0);
}

// Forks a program that leaves while a copier of the gateway waits for its memory, over and over;
// the userfaultfd stays with another process, so that nothing ends the wait.
void DeadBlockedMemory(const Server& server) {
  while (!Ended()) {
    const pid_t child = fork();
    if (child == 0) {
      const MissingMemory missing;
      if (fork() == 0)
        for (;;) pause();
      LeaveWithMissingMemory(missing, server.gid_index);
    }
    waitpid(child, nullptr, 0);
  }
}

// Asks for an event of each completion and reads none.
void UnreadEvents(const Server& server) {
  const Talk talk(server, 4, 64, 4096);
  ibv_send_wr request = talk.Request(IBV_WR_RDMA_WRITE, 8);
  for (size_t i = 0; i < talk.size() * 64; ++i) {
    request.wr_id = i % talk.size();
    talk.Post(request.wr_id, request, talk.Piece(8));
  }
  while (!Ended()) {
    ibv_wc done;
    const int count = ibv_poll_cq(talk.cq(), 1, &done);
    if (count < 0 || ibv_req_notify_cq(talk.cq(), 0) != 0) Fail("ibv_req_notify_cq");
    if (count == 0) continue;
    request.wr_id = done.wr_id;
    talk.Post(done.wr_id, request, talk.Piece(8));
  }
}

// Attaches a queue pair to every multicast group that it gets, and leaves them all.
void MulticastHoard(const Server& server) {
  const Talk talk(server, 1, 1, 4096);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = talk.cq();
  init.qp_type = IBV_QPT_UD;
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* const qp = ibv_create_qp(talk.pd(), &init);
  if (qp == nullptr) Fail("ibv_create_qp");
  while (!Ended()) {
    std::vector<ibv_gid> joined;
    for (uint32_t group = 0; group < 4096; ++group) {
      // ::ffff:239.9.X.Y
      ibv_gid gid{};
      gid.raw[10] = gid.raw[11] = 0xFF;
      gid.raw[12] = 239;
      gid.raw[13] = 9;
      gid.raw[14] = static_cast<uint8_t>(group >> 8);
      gid.raw[15] = static_cast<uint8_t>(group);
      if (ibv_attach_mcast(qp, &gid, 0) != 0) break;
      joined.push_back(gid);
    }
    for (const ibv_gid& gid : joined) ibv_detach_mcast(qp, &gid, 0);
  }
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
    {"blocked_memory", BlockedMemory},
    {"dead_blocked_memory", DeadBlockedMemory},
    {"unread_events", UnreadEvents},
    {"multicast_hoard", MulticastHoard},
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
