// SPDX-License-Identifier: Apache-2.0
// Program at one end of a queue pair that uses everything that verbs allow, at random, and checks
// the results. Each request completes once, in order, with the right status. Messages arrive whole,
// in order, and match their receives. READs return what is there; an atomic executes exactly once;
// no other memory changes. Two Talkers face each other.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "tests/sim/oracle/shared_inbox.h"
#include "tests/sim/oracle/speaker.h"

namespace rocegw::sim {

// Ways to end a conversation early: this end's last request is one that must fail.
enum class BadRequest : uint8_t { kNone, kWrongKeyWrite, kWrongKeyRead, kWrongLocalKey, kTooLong };

struct TalkerConfig : SpeakerConfig {
  // Percentages of each kind; the rest are SENDs.
  uint32_t writes = 25;
  uint32_t writes_with_immediate = 10;
  uint32_t reads = 15;
  uint32_t atomics = 10;
  uint32_t unsignaled = 30;  // percent
  BadRequest ending = BadRequest::kNone;
  bool channel = false;  // its requests use a channel
  // Percentage of WRITEs and READs that ask for less order than verbs; requests around them keep
  // their order. Drawn from a separate seed.
  uint32_t less_order = 0;
  uint64_t order_seed = 0;
};

class Talker final : public Speaker {
 public:
  // Returns the bytes of memory needed.
  static uint64_t Room(const TalkerConfig& config) { return RoomFor(config, 1); }
  // Uses the host's memory, represented by the arena, from `base` on. Takes receives from `inbox`
  // if there is one.
  Talker(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t pair, uint32_t side,
         const TalkerConfig& config, SharedInbox* inbox, Random random);
  void Meet(Talker& peer) { peer_ = &peer; }

  bool done() const override;
  void Finish() override;
  std::string Describe() const override;
  const TalkerConfig& config() const { return config_; }
  // Returns true if a request reported the failure of another one, which happens only if its
  // response was lost.
  bool blamed_for_another() const { return blamed_for_another_; }

 private:
  struct Asked : Request {
    bool signaled = true;
    uint8_t must_fail = 0;  // ibv_wc_status; 0: must succeed
    uint64_t original = 0;  // atomics: expected result
    uint64_t result = 0;    // atomics: value of the word afterwards
  };
  // Message that the other end must receive, in order.
  struct Message : Request {
    uint32_t immediate = 0;
    bool with_immediate = false;
  };

  std::string Name() const override;
  bool Over() const override { return broken_ || Broken(); }
  void PostReceives() override;
  bool LacksReceive() const override { return receives_.size() < plan_.slots; }
  bool PostReceive() override;
  bool MayPost() const override;
  bool PostOne() override;
  bool NothingAnnounced() const override;
  void OnReceive(const rocegw_cqe& cqe) override;
  void OnSent(const rocegw_cqe& cqe) override;

  RingEnd::Sges Pieces(uint64_t at, uint32_t length, uint32_t key);
  Kind DrawKind();
  // Turns the last request into one that must fail.
  void Spoil(Asked& request);
  uint16_t OrderOf(Kind kind);
  // Draws an atomic's operands and computes the other end's word after it.
  void Calculate(Asked& request, rocegw_send_wqe& wqe);
  // Returns the location of the completed receive's bytes; nothing if no receive could complete.
  std::optional<Receive> TakeReceive(const rocegw_cqe& cqe);
  void OnDone(const Asked& request);
  void OnFlushed(const Asked& request);
  bool NothingLeft() const;

  const TalkerConfig config_;
  Random order_random_;
  Talker* peer_ = nullptr;
  std::deque<Asked> requests_;    // posted and not known to be complete
  std::deque<Message> messages_;  // sent to the peer and not received
  SharedInbox* const inbox_;
  std::deque<uint64_t> receives_;  // ids of its own receives
  uint64_t received_ = 0;
  uint64_t receive_ids_ = 0;
  uint64_t counter_ = 0;  // the peer's word after everything posted has executed
  bool broken_ = false;   // a request or a receive failed as intended
  bool sends_broken_ = false;
  bool blamed_for_another_ = false;
};

}  // namespace rocegw::sim
