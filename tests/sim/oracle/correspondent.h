// SPDX-License-Identifier: Apache-2.0
// Program with an endpoint (gateway/client/dv/rocegwdv.h) that writes to all others of its world at
// random, and checks the results. Each request completes once, with success, in order where
// requested. Each message arrives once, whole, from the right sender, and after the messages that
// it must not overtake. READs return what is there; atomics execute exactly once; no other memory
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
  // Returns the bytes of memory for one of `all` correspondents.
  static uint64_t Room(const SpeakerConfig& config, size_t all) {
    return RoomFor(config, static_cast<uint32_t>(all));
  }
  // `number`: its number, from 0, among `all`. Uses the host's memory from `base` on.
  Correspondent(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t number, size_t all,
                const SpeakerConfig& config, Random random);
  // Adds a correspondent that it may write to by the handle.
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
    bool waits = false;   // strong order
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

  // Draws the order flags of a request.
  uint16_t DrawOrder(Asked& request);
  // Checks an atomic's result: the next value of the other's word, which no other atomic may have
  // returned.
  void OnAtomic(const Asked& request);

  std::vector<Other> others_;
  std::map<uint64_t, Asked> requests_;  // by id: posted and not known to be complete
  std::map<uint64_t, Asked> messages_;  // requests that take a receive, until received
  std::vector<uint32_t> free_slots_;
  std::vector<uint64_t> free_inboxes_;
  std::set<uint64_t> found_;  // results that atomics on this word have returned
  uint64_t adds_ = 0;         // atomics requested on this word
  uint64_t added_ = 0;        // completed ones among them
};

}  // namespace rocegw::sim
