// SPDX-License-Identifier: Apache-2.0
// A program at one end of a queue pair that does everything verbs allow, at random, and knows what
// must come of it: each request completes once, in order, with the right status; messages arrive
// whole, in order, and match their receives; READs bring what is there; an atomic takes effect
// exactly once; nothing else in memory changes. Two Talkers face each other.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "tests/sim/oracle/shared_inbox.h"
#include "tests/sim/oracle/speaker.h"

namespace rocegw::sim {

// How a conversation may end before all is said: this end's last request is one that must fail.
enum class BadRequest : uint8_t { kNone, kWrongKeyWrite, kWrongKeyRead, kWrongLocalKey, kTooLong };

struct TalkerConfig : SpeakerConfig {
  // How often of 100 each kind is chosen; the rest are SENDs.
  uint32_t writes = 25;
  uint32_t writes_with_immediate = 10;
  uint32_t reads = 15;
  uint32_t atomics = 10;
  uint32_t unsignaled = 30;  // of 100
  BadRequest ending = BadRequest::kNone;
  bool channel = false;  // what carries its requests
  // Of 100 WRITEs and READs, those that ask for less order than verbs; what they stand behind and
  // what stands behind them keeps its own. Drawn from a seed of its own.
  uint32_t less_order = 0;
  uint64_t order_seed = 0;
};

class Talker final : public Speaker {
 public:
  // Bytes of memory that it needs.
  static uint64_t Room(const TalkerConfig& config) { return RoomFor(config, 1); }
  // From `base` on it uses the host's memory, which the arena stands for. Its receives are those of
  // the inbox, if there is one.
  Talker(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t pair, uint32_t side,
         const TalkerConfig& config, SharedInbox* inbox, Random random);
  void Meet(Talker& peer) { peer_ = &peer; }

  bool done() const override;
  void Finish() override;
  std::string Describe() const override;
  const TalkerConfig& config() const { return config_; }
  // A request told what another one did, which happens only when its answer was lost.
  bool blamed_for_another() const { return blamed_for_another_; }

 private:
  struct Asked : Request {
    bool signaled = true;
    uint8_t must_fail = 0;  // ibv_wc_status; 0: must not
    uint64_t original = 0;  // atomics: what must come back
    uint64_t result = 0;    // and what the word is then
  };
  // What the other end receives for, in order.
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
  // The last request becomes one that must fail.
  void Spoil(Asked& request);
  uint16_t OrderOf(Kind kind);
  // What the other end's word is after an atomic, whose operands this draws.
  void Calculate(Asked& request, rocegw_send_wqe& wqe);
  // Where the bytes of the receive lie that has completed; nothing when none could.
  std::optional<Receive> TakeReceive(const rocegw_cqe& cqe);
  void OnDone(const Asked& request);
  void OnFlushed(const Asked& request);
  bool NothingLeft() const;

  const TalkerConfig config_;
  Random order_random_;
  Talker* peer_ = nullptr;
  std::deque<Asked> requests_;    // posted and not known to be complete
  std::deque<Message> messages_;  // posted towards the peer, not received
  SharedInbox* const inbox_;
  std::deque<uint64_t> receives_;  // ids, of its own
  uint64_t received_ = 0;
  uint64_t receive_ids_ = 0;
  uint64_t counter_ = 0;  // of the peer, when everything posted has been done
  bool broken_ = false;   // a request or a receive has failed, and was to
  bool sends_broken_ = false;
  bool blamed_for_another_ = false;
};

}  // namespace rocegw::sim
