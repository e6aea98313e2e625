// SPDX-License-Identifier: Apache-2.0
// Single paths through the client library and two gateways, for counting their instructions:
// compare_counts.py runs this program under callgrind. A path runs some operations as warm-up, then
// the counted ones, and dumps its count under its name. One thread, virtual time, no system calls
// in the paths, so a count is the same in each run.
//
// Without arguments the program runs all paths; outside of callgrind it prints no counts.
#include <infiniband/verbs.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gateway/wire/crc/icrc.h"
#include "tests/bench/library_program.h"

namespace rocegw::testing {
namespace {

// Counts the instructions of its lifetime.
class Counted {
 public:
  explicit Counted(bool counts) : counts_(counts) {
    if (counts_) CALLGRIND_TOGGLE_COLLECT;
  }
  ~Counted() {
    if (counts_) CALLGRIND_TOGGLE_COLLECT;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  const bool counts_;
};

// Writes the count since the last call, as that of `operations` operations of a path.
void Report(const char* path, uint64_t operations) {
  const std::string name = std::string(path) + " " + std::to_string(operations);
  CALLGRIND_DUMP_STATS_AT(name.c_str());
  std::printf("%s\n", name.c_str());
}

// What is counted of a path of messages.
enum class Part { kProgram, kAll };

struct MessagePath {
  const char* name;
  ibv_wr_opcode opcode;
  uint32_t size;
  uint32_t depth;
  uint64_t operations;
  bool channels = false;
  Part part = Part::kAll;
};

constexpr MessagePath kMessagePaths[] = {
    {"library_post_and_poll", IBV_WR_RDMA_WRITE, 8, 16, 512, false, Part::kProgram},
    {"write_8", IBV_WR_RDMA_WRITE, 8, 16, 512},
    {"write_8_channel", IBV_WR_RDMA_WRITE, 8, 16, 512, true},
    {"write_8_alone_channel", IBV_WR_RDMA_WRITE, 8, 1, 256, true},
    {"write_1m", IBV_WR_RDMA_WRITE, 1 << 20, 2, 4},
    {"write_1m_channel", IBV_WR_RDMA_WRITE, 1 << 20, 2, 4, true},
    {"send_64", IBV_WR_SEND, 64, 16, 512},
    {"send_64_channel", IBV_WR_SEND, 64, 16, 512, true},
    {"read_64k", IBV_WR_RDMA_READ, 64 << 10, 4, 32},
    {"read_64k_channel", IBV_WR_RDMA_READ, 64 << 10, 4, 32, true},
    {"fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, 256},
};

class Exchange {
 public:
  explicit Exchange(const MessagePath& path)
      : path_(path),
        gateways_(Options(path)),
        sender_(gateways_.AddQp(0, Ring(77))),
        receiver_(gateways_.AddQp(1, Ring(78))),
        program_((gateways_.Connect(sender_, receiver_), gateways_), sender_),
        sges_(path.depth),
        wrs_(path.depth),
        now_(gateways_.now()) {}

  void Run(uint64_t operations, bool counts) {
    for (uint64_t done = 0, posted = 0; done < operations;) {
      if (path_.opcode == IBV_WR_SEND) PostReceives();
      {
        const Counted counted(counts);
        posted += Post(std::min(path_.depth - (posted - done), operations - posted));
      }
      // A gateway sends at most one window in this time.
      now_ = now_ + Microseconds(50);
      {
        const Counted counted(counts && path_.part == Part::kAll);
        for (const int side : {0, 1, 0}) gateways_.RunWorker(side, 0, now_);
      }
      const Counted counted(counts);
      done += Poll();
    }
  }

 private:
  static GatewayPairOptions Options(const MessagePath& path) {
    GatewayPairOptions options;
    options.reach = Reach::kDirect;
    options.memory_bytes = 4 << 20;
    options.congestion.window_bytes = 512 << 10;
    options.channels = path.channels;
    return options;
  }
  static RingOptions Ring(uint32_t qpn) {
    RingOptions ring;
    ring.sq_entries = ring.rq_entries = 64;
    ring.max_sge = 1;
    ring.payload_stride = 64;
    ring.qpn = qpn;
    return ring;
  }

  uint64_t Post(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      sges_[i] = {gateways_.Base(0), path_.size, GatewayPair::kKey[0]};
      ibv_send_wr& wr = wrs_[i];
      wr = {};
      wr.sg_list = &sges_[i];
      wr.num_sge = 1;
      wr.opcode = path_.opcode;
      wr.send_flags = IBV_SEND_SIGNALED;
      if (path_.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = gateways_.Base(1);
        wr.wr.atomic.rkey = GatewayPair::kKey[1];
        wr.wr.atomic.compare_add = 1;
      } else {
        wr.wr.rdma.remote_addr = gateways_.Base(1);
        wr.wr.rdma.rkey = GatewayPair::kKey[1];
      }
      if (i != 0) wrs_[i - 1].next = &wr;
    }
    if (count != 0 && program_.Post(wrs_.data()) != 0) std::abort();
    return count;
  }
  uint64_t Poll() {
    ibv_wc wcs[64];
    uint64_t done = 0;
    int n;
    while ((n = program_.Poll(64, wcs)) > 0) {
      for (int i = 0; i < n; ++i)
        if (wcs[i].status != IBV_WC_SUCCESS) std::abort();
      done += static_cast<uint64_t>(n);
    }
    return done;
  }
  // The receiving program is not counted: the sender's is the same code.
  void PostReceives() {
    receiver_.Poll();
    while (receiver_.PostReceive(1, {{gateways_.Base(1), 4096, GatewayPair::kKey[1]}})) {
    }
    gateways_.Ring(1, receiver_);
  }

  const MessagePath& path_;
  GatewayPair gateways_;
  RingEnd& sender_;
  RingEnd& receiver_;
  LibraryProgram program_;
  std::vector<ibv_sge> sges_;
  std::vector<ibv_send_wr> wrs_;
  TimePoint now_;
};

// Workers that have one session, 64 idle queue pairs and nothing to do.
void CountIdleIterations() {
  constexpr uint64_t kIterations = 1000;
  GatewayPair gateways{GatewayPairOptions{}};
  RingOptions ring;
  for (uint32_t i = 0; i < 64; ++i) {
    ring.qpn = 0x100 + i;
    ring.handle = i + 1;
    gateways.AddQp(0, ring);
  }
  const TimePoint now = gateways.now();
  for (int i = 0; i < 100; ++i) gateways.RunWorker(0, 0, now);
  {
    const Counted counted(true);
    for (uint64_t i = 0; i < kIterations; ++i) gateways.RunWorker(0, 0, now);
  }
  Report("idle_iteration", kIterations);
}

// Two queue pairs are made, connected and destroyed, with the control messages of both workers.
void CountQueuePairs() {
  constexpr uint64_t kPairs = 64;
  GatewayPair gateways{GatewayPairOptions{}};
  for (uint64_t i = 0; i < kPairs + 8; ++i) {
    const Counted counted(i >= 8);
    RingOptions ring;
    ring.qpn = static_cast<uint32_t>(0x100 + 2 * i);
    RingEnd& a = gateways.AddQp(0, ring);
    ++ring.qpn;
    RingEnd& b = gateways.AddQp(1, ring);
    gateways.Connect(a, b);
    gateways.Remove(0, a);
    gateways.Remove(1, b);
  }
  Report("make_connect_destroy", kPairs);
}

void CountCopyWithCrc() {
  constexpr uint64_t kPieces = 256;
  std::vector<uint8_t> from(4096, 7), to(4096);
  volatile uint32_t sink = 0;
  {
    const Counted counted(true);
    for (uint64_t i = 0; i < kPieces; ++i) sink = wire::CrcCopy(sink, to.data(), from.data(), 4096);
  }
  Report("copy_with_crc_4096", kPieces);
}

int Main() {
  for (const MessagePath& path : kMessagePaths) {
    Exchange exchange(path);
    exchange.Run(std::max<uint64_t>(path.operations / 4, 2 * path.depth), false);
    exchange.Run(path.operations, true);
    Report(path.name, path.operations);
  }
  CountIdleIterations();
  CountQueuePairs();
  CountCopyWithCrc();
  return 0;
}

}  // namespace
}  // namespace rocegw::testing

int main() { return rocegw::testing::Main(); }
