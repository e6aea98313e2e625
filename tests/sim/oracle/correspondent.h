// SPDX-License-Identifier: Apache-2.0
// A program with an endpoint (gateway/include rocegwdv.h) that writes to all others of its world at
// random and knows what must come of it: each request completes once and well, in order where that
// was asked for; each message arrives once, whole, from whom it says, and behind those that it must
// not pass; READs bring what is there; atomics take effect exactly once; nothing else in memory
// changes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/oracle/speaker.h"

namespace rocegw::sim {

class Correspondent final : public Speaker {
 public:
  // Bytes of memory that one of so many needs.
  static uint64_t Room(const SpeakerConfig& config, size_t all) {
    return RoomFor(config, static_cast<uint32_t>(all));
  }
  // `number`: its own, from 0, among `all`. From `base` on it uses the host's memory.
  Correspondent(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t number, size_t all,
                const SpeakerConfig& config, Random random);
  // It may write to that one, by that handle.
  void Meet(Correspondent& other, uint32_t handle) { others_.push_back({&other, handle}); }

  bool done() const override;
  void Finish() override { arena_.ExpectWord(CounterAt(), added_); }
  std::string Describe() const override;

 private:
  struct Other {
    Correspondent* who = nullptr;
    uint32_t handle = 0;
  };
  struct Asked : Request {
    bool passes = false;  // asks for no order
    bool waits = false;   // is of strong order
    Correspondent* to = nullptr;
  };

  std::string Name() const override;
  bool Over() const override { return false; }
  bool LacksReceive() const override { return !free_inboxes_.empty(); }
  bool PostReceive() override;
  bool MayPost() const override { return !others_.empty() && !free_slots_.empty(); }
  bool PostOne() override;
  bool NothingAnnounced() const override { return requests_.empty(); }
  void OnReceive(const rocegw_cqe& cqe) override;
  void OnSent(const rocegw_cqe& cqe) override;

  // How much order it asks for, as flags of the work request.
  uint16_t DrawOrder(Asked& request);
  // The next number of the other's word has come; nobody else may have brought it.
  void OnAtomic(const Asked& request);

  std::vector<Other> others_;
  std::map<uint64_t, Asked> requests_;  // by id: posted and not known to be complete
  std::map<uint64_t, Asked> messages_;  // those that take a receive, until they are received
  std::vector<uint32_t> free_slots_;
  std::vector<uint64_t> free_inboxes_;
  std::set<uint64_t> found_;  // what atomics here have brought to those who asked
  uint64_t adds_ = 0;         // atomics asked for here
  uint64_t added_ = 0;        // and those that are complete
};

}  // namespace rocegw::sim
