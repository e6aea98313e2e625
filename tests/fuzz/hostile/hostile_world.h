// SPDX-License-Identifier: Apache-2.0
// Two gateways of real workers and session servers, joined in memory; on the left one a program
// that writes descriptors, indices, doorbells and whatever else lies in memory it may write, as a
// seed says, and one that sends such messages; a good program on each gateway that must not notice,
// and another on the right one that the hostile program's queue pairs are connected to. After each
// batch of descriptors everything is compared with what must be; what is not as it must be throws
// std::runtime_error. One thread; time is the machine's, so a seed repeats what is written, and not
// to the turn when it is looked at.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/hostile/descriptors.h"
#include "tests/support/qp/client_rings.h"
#include "tests/support/session/worker_host.h"

namespace rocegw::testing {

struct HostileFigures {
  uint64_t sends = 0;     // spoiled descriptors written
  uint64_t receives = 0;  // the same
  uint64_t indices = 0;   // of rings and completion queues
  uint64_t doorbells = 0;
  uint64_t bytes_elsewhere = 0;  // in any memory that the program may write
  uint64_t messages = 0;
  uint64_t batches = 0;
  uint64_t sessions_ended = 0;               // for what they did in shared memory
  uint64_t connections_refused = 0;          // and for what they sent
  uint64_t good_messages = 0;                // that the good programs exchanged meanwhile
  uint64_t by_xrc = 0;                       // messages that arrived, both ways
  uint64_t refused_when_read = 0;            // descriptors
  std::map<uint32_t, uint64_t> completions;  // of the hostile program, by status
  std::map<std::string, uint64_t> ends;      // sessions, by what was logged

  uint64_t descriptors() const { return sends + receives; }
};

class HostileWorld {
 public:
  HostileWorld(uint64_t seed, bool channels);
  ~HostileWorld();

  // Some descriptors, and everything looked at.
  void Batch();
  // The hostile programs leave: nothing of theirs remains.
  void LookForLeaks();
  const HostileFigures& figures() const { return figures_; }
  // What the gateways counted, for people.
  std::string Counters() const;

 private:
  static constexpr uint32_t kDepth = 64;
  static constexpr size_t kMemory = 1 << 16;

  // A program with one protection domain and completion queue; memory of its own with a margin on
  // both sides that no key covers.
  struct Program {
    WorkerHost::Program base;
    uint32_t context = 0;
    uint32_t key = 0;  // of its own memory, good for everything
    ClientCq cq;
    uint32_t xrcd = 0;  // a domain of its own
    std::vector<uint8_t> memory = std::vector<uint8_t>(3 * kMemory, 0xEE);
    uint64_t at() const { return reinterpret_cast<uint64_t>(memory.data()) + kMemory; }
    TestClient& client() { return *base.client; }
  };
  // A queue pair of the hostile program and the one that it is connected to.
  struct Line {
    verbs::QpType type;    // of the hostile one
    bool shares_receives;  // the hostile one, with nobody
    ClientQp hostile;
    ClientQp victim;
    ClientSrq receives;
    uint32_t receives_done = 0;  // of those that are shared

    bool sends() const { return type != verbs::QpType::kXrcReceive; }
    bool has_receives() const { return type != verbs::QpType::kXrcSend && !shares_receives; }
    // What was posted and may be there still.
    uint32_t receives_left() { return receives.control().producer - receives_done; }
  };
  // What one batch did, as far as it must be known afterwards.
  struct Written {
    uint32_t sends = 0;
    uint32_t malformed = 0;
    bool exact = true;     // what completes can be foreseen
    bool damaged = false;  // the program cannot go on with its queues
  };

  void Begin(WorkerHost& host, Program& program);
  ClientQp NewQp(Program& program, verbs::QpType type, uint32_t srq = 0);
  ClientSrq NewSrq(Program& program, bool xrc);
  void BeginHostile();
  void ConnectLine(Line& line);
  bool HostileGone();

  void WriteDescriptors(Line& line, Written& written);
  uint32_t WriteReceives(Line& line, Descriptors& descriptors, bool all_spoiled);
  void Mischief(Line& line, Written& written);
  void SendMessages();
  void PostForVictim(Line& line);
  void GoodExchange();
  void TakeGoodOnes(int side);
  void RunUntilQuiet(Line& line, const Written& written);
  void JudgeLine(Line& line, const Written& written, uint64_t errors_before, uint64_t bad_before);
  void CheckMargins(const Program& program, const char* whose) const;
  void Poll();
  std::vector<uint64_t> Held() const;

  Random random_;
  WorkerHost left_;
  WorkerHost right_;
  std::array<Program, 2> good_;
  std::array<ClientQp, 2> good_qp_;
  Program victim_;
  ClientSrq victim_receives_;  // of XRC
  uint32_t victim_receives_done_ = 0;
  std::optional<Program> hostile_;
  std::unique_ptr<TestClient> messenger_;
  uint8_t* hole_ = nullptr;  // registered, and not there
  Surroundings around_;
  std::vector<Line> lines_;

  // Of the batch under way.
  std::vector<rocegw_cqe> completed_;
  std::array<std::vector<std::vector<uint8_t>>, 2> expected_;  // by receiving side
  std::array<size_t, 2> arrived_{};
  size_t log_read_ = 0;

  std::vector<uint64_t> held_at_first_;
  HostileFigures figures_;
};

}  // namespace rocegw::testing
