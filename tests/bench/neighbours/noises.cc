// SPDX-License-Identifier: Apache-2.0
// What badly behaved programs do, with nothing but verbs: the kinds of bench_noise (noises.cc
// there), and one that a worker alone cannot show: memory that never answers.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
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

// Changes its memory, and what is mapped there, until it ends: bytes, missing pages, other
// mappings.
class UnstableMemory {
 public:
  static constexpr size_t kBytes = size_t{8} << 20;

  UnstableMemory() : at_(static_cast<uint8_t*>(Map(nullptr, kBytes, 0))) {
    std::memset(at_, 0x5C, kBytes);
  }
  ~UnstableMemory() {
    for (std::thread& thread : threads_) thread.join();
  }
  UnstableMemory(const UnstableMemory&) = delete;
  UnstableMemory& operator=(const UnstableMemory&) = delete;

  uint8_t* at() const { return at_; }
  // Begins to change it. Ends with the program.
  void Begin() {
    threads_.emplace_back([this] {
      for (uint8_t value = 0; !Ended(); ++value) std::memset(at_, value, kBytes);
    });
    threads_.emplace_back([this] {
      constexpr size_t kPart = size_t{1} << 16;
      for (size_t part = 0; !Ended(); part = (part + 7) % (kBytes / kPart)) {
        uint8_t* const piece = at_ + part * kPart;
        if (part % 2 == 0) {
          (void)madvise(piece, kPart, MADV_DONTNEED);
        } else if (part % 16 == 1) {
          (void)Map(piece, kPart, MAP_FIXED);
        }
        usleep(50);
      }
    });
  }

 private:
  static void* Map(void* where, size_t bytes, int flags) {
    void* const at =
        mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (at == MAP_FAILED) Fail("mmap");
    return at;
  }

  uint8_t* const at_;
  std::vector<std::thread> threads_;
};

// Sends from memory that it changes meanwhile. Requests may fail: packets whose bytes change under
// way are dropped by their receiver.
void ChangingMemory(const Server& server) {
  constexpr uint32_t kLength = 1 << 16;
  const Talk talk(server, 4, 4, kLength);
  UnstableMemory memory;
  ibv_mr* const mr =
      ibv_reg_mr(talk.pd(), memory.at(), UnstableMemory::kBytes, IBV_ACCESS_LOCAL_WRITE);
  if (mr == nullptr) Fail("ibv_reg_mr");
  memory.Begin();
  ibv_send_wr request = talk.Request(IBV_WR_RDMA_WRITE, kLength);
  size_t posted = 0;
  const auto post = [&](size_t qp) {
    request.wr_id = qp;
    const size_t offset = posted++ * kLength % UnstableMemory::kBytes;
    talk.Post(qp, request, {reinterpret_cast<uint64_t>(memory.at() + offset), kLength, mr->lkey});
  };
  for (size_t i = 0; i < 4 * talk.size(); ++i) post(i % talk.size());
  std::vector<uint32_t> flushed(talk.size());
  while (!Ended()) {
    talk.Wait([&](const ibv_wc& wc) {
      if (wc.status == IBV_WC_SUCCESS) return post(wc.wr_id);
      if (++flushed[wc.wr_id] != 4) return;
      flushed[wc.wr_id] = 0;
      talk.Revive(wc.wr_id);
      for (int i = 0; i < 4; ++i) post(wc.wr_id);
    });
  }
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
    {"changing_memory", ChangingMemory},
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
