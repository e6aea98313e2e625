// SPDX-License-Identifier: Apache-2.0
// Two gateways with production workers and session servers, joined in memory. On the left gateway,
// one hostile program writes damaged descriptors, indices, doorbells and other writable memory, as
// the seed determines, and another one sends damaged messages. On the right gateway, a program has
// the queue pairs to which the hostile program is connected. A well-behaved program on each gateway
// must see no effect. After each batch of descriptors all results are checked; a wrong one throws
// std::runtime_error. One thread, and one that changes descriptors meanwhile (racer.h) in a world
// of `kRacing`, whose completions cannot be predicted. Time is real, so a seed repeats the written
// data, but not the iteration in which a worker reads it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fuzz/hostile/descriptors.h"
#include "tests/support/qp/client_rings.h"
#include "tests/support/session/ring_program.h"
#include "tests/support/session/worker_host.h"

namespace rocegw::testing {

struct HostileFigures {
  uint64_t sends = 0;     // damaged send descriptors
  uint64_t receives = 0;  // damaged receive descriptors
  uint64_t indices = 0;   // damaged indices of rings and completion queues
  uint64_t doorbells = 0;
  uint64_t bytes_elsewhere = 0;  // written to other memory that the program may write
  uint64_t messages = 0;
  uint64_t rings = 0;  // that the program of messages asked for
  uint64_t ring_messages = 0;
  uint64_t most_events = 0;  // that waited for one program
  uint64_t batches = 0;
  uint64_t sessions_ended = 0;               // because of shared memory
  uint64_t connections_refused = 0;          // because of messages
  uint64_t good_messages = 0;                // exchanged by the well-behaved programs
  uint64_t by_xrc = 0;                       // messages by XRC, both directions
  uint64_t by_endpoint = 0;                  // messages by endpoints, both directions
  uint64_t endpoint_moves = 0;               // state changes of endpoints that were asked for
  uint64_t refused_when_read = 0;            // descriptors
  uint64_t raced = 0;                        // changes of descriptors while workers ran
  std::map<uint32_t, uint64_t> completions;  // completions of the hostile program, by status
  std::map<std::string, uint64_t> ends;      // ended sessions, by log line

  uint64_t descriptors() const { return sends + receives; }
};

inline void Require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Returns the bytes of heap that this process uses; 0 with a sanitizer's allocator.
uint64_t HeapInUse();

// Whether a thread changes the descriptors while a worker reads them.
enum class Descriptions : uint8_t { kSettled, kRacing };

class HostileWorld {
 public:
  HostileWorld(uint64_t seed, bool channels, Descriptions descriptions = Descriptions::kSettled);
  ~HostileWorld();

  // Writes a batch of descriptors and checks all results.
  void Batch();
  // Ends the hostile programs and checks that nothing of theirs remains.
  void LookForLeaks();
  const HostileFigures& figures() const { return figures_; }
  // Returns the gateways' counters as text.
  std::string Counters() const;

 private:
  static constexpr uint32_t kDepth = 64;
  static constexpr size_t kMemory = 1 << 16;

  // Program with one protection domain and completion queue. Its memory has a margin on both sides
  // that no key covers.
  struct Program {
    WorkerHost::Program base;
    uint32_t context = 0;
    uint32_t key = 0;  // key of its memory, with all rights
    ClientCq cq;
    uint32_t xrcd = 0;  // XRC domain
    std::vector<uint8_t> memory = std::vector<uint8_t>(3 * kMemory, 0xEE);
    uint64_t at() const { return reinterpret_cast<uint64_t>(memory.data()) + kMemory; }
    TestClient& client() { return *base.client; }
  };
  // Queue pair of the hostile program and its peer.
  struct Line {
    verbs::QpType type;    // type of the hostile queue pair
    bool shares_receives;  // the hostile queue pair has a shared receive queue, alone
    ClientQp hostile;
    ClientQp victim;
    ClientSrq receives;
    uint32_t receives_done = 0;  // completed shared receives
    // Endpoints: handles by which each side names the other.
    uint32_t peer_of_hostile = 0;
    uint32_t peer_of_victim = 0;

    bool is_endpoint() const { return type == verbs::QpType::kEndpoint; }
    bool sends() const { return type != verbs::QpType::kXrcReceive; }
    bool has_receives() const { return type != verbs::QpType::kXrcSend && !shares_receives; }
    // Returns the number of posted shared receives that may still be in the queue.
    uint32_t receives_left() { return receives.control().producer - receives_done; }
  };
  // Facts about one batch that the checks need.
  struct Written {
    uint32_t sends = 0;
    uint32_t malformed = 0;
    bool exact = true;     // the completions are predictable
    bool damaged = false;  // the program's queues are unusable
  };

  void Begin(WorkerHost& host, Program& program);
  ClientQp NewQp(Program& program, verbs::QpType type, uint32_t srq = 0);
  ClientSrq NewSrq(Program& program, bool xrc);
  // Names an endpoint on the other side. Returns 0 if the program's session has ended.
  uint32_t NewPeer(Program& program, const ClientQp& endpoint, const wire::Gid& gateway);
  void BeginHostile();
  void ConnectLine(Line& line);
  bool HostileGone();

  void WriteDescriptors(Line& line, Written& written);
  uint32_t WriteReceives(Line& line, Descriptors& descriptors, bool all_spoiled);
  void Mischief(Line& line, Written& written);
  std::vector<std::span<uint8_t>> SlotsOf(Line& line);
  // Asks for any state of an endpoint, and looks at the state that the gateway tells.
  void MoveEndpoint(Program& program, const ClientQp& endpoint);
  void BeginMessenger();
  void SendMessages();
  void ReadAnswers();
  void SpoilRings();
  std::vector<uint8_t> SpoiledRequest(uint32_t type, size_t of_type, bool numbered);
  // Checks what the gateway holds for the programs now.
  void JudgeBounds();
  void PostForVictim(Line& line);
  void GoodExchange();
  void TakeGoodOnes(int side);
  void RunUntilQuiet(Line& line, const Written& written);
  void JudgeLine(Line& line, const Written& written, uint64_t errors_before, uint64_t bad_before);
  void CheckMargins(const Program& program, const char* whose) const;
  void Poll();
  std::vector<uint64_t> Held() const;

  const Descriptions descriptions_;
  Random random_;
  const bool channels_;
  WorkerHost left_;
  WorkerHost right_;
  std::array<Program, 2> good_;
  std::array<ClientQp, 2> good_qp_;
  Program victim_;
  ClientSrq victim_receives_;  // for XRC
  uint32_t victim_receives_done_ = 0;
  std::optional<Program> hostile_;
  std::unique_ptr<TestClient> messenger_;
  std::unique_ptr<MappedRings> messenger_rings_;
  UniqueFd unread_;          // event channel of the messenger, which nobody reads
  uint8_t* hole_ = nullptr;  // registered and unmapped
  Surroundings around_;
  std::vector<Line> lines_;

  // State of the current batch.
  std::vector<rocegw_cqe> completed_;
  std::array<std::vector<std::vector<uint8_t>>, 2> expected_;  // by receiving side
  std::array<size_t, 2> arrived_{};
  size_t log_read_ = 0;

  std::vector<uint64_t> held_at_first_;
  uint64_t heap_at_first_ = 0;
  HostileFigures figures_;
};

}  // namespace rocegw::testing
