// SPDX-License-Identifier: Apache-2.0
// A program at one end of a queue pair that does everything verbs allow, at random, and knows what
// must come of it: each request completes once, in order, with the right status; messages arrive
// whole, in order, and match their receives; READs bring what is there; an atomic takes effect
// exactly once; nothing else in memory changes. Two Talkers face each other.
//
// Slots of memory are used by one request at a time. After a WRITE is complete its target is
// written over at once, so that a late copy of the WRITE would show.
//
// Owned by a scenario; one thread. The first thing that is wrong is kept as text, and the Talker
// stops.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "tests/sim/host/host.h"
#include "tests/sim/oracle/arena.h"
#include "tests/sim/oracle/shared_inbox.h"

namespace rocegw::sim {

// How a conversation may end before all is said: this end's last request is one that must fail.
enum class BadRequest : uint8_t { kNone, kWrongKeyWrite, kWrongKeyRead, kWrongLocalKey, kTooLong };

struct TalkerConfig {
  uint32_t max_length = 10000;  // of a message
  uint32_t slots = 4;           // requests under way, and receives posted
  uint64_t messages = 20;       // requests to post
  // How often of 100 each kind is chosen; the rest are SENDs.
  uint32_t writes = 25;
  uint32_t writes_with_immediate = 10;
  uint32_t reads = 15;
  uint32_t atomics = 10;
  uint32_t unsignaled = 30;    // of 100
  uint32_t late_receives = 0;  // of 100 looks, those at which no receive is posted
  BadRequest ending = BadRequest::kNone;
  bool channel = false;  // what carries its requests
  // Of 100 WRITEs and READs, those that ask for less order than verbs; what they stand behind and
  // what stands behind them keeps its own. Drawn from a seed of its own.
  uint32_t less_order = 0;
  uint64_t order_seed = 0;
};

class Talker final : public Program {
 public:
  // Bytes of memory that it needs.
  static uint64_t Room(const TalkerConfig& config);
  // From `base` on it uses the host's memory, which the arena stands for. Its receives are those of
  // the inbox, if there is one.
  Talker(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t pair, uint32_t side,
         const TalkerConfig& config, SharedInbox* inbox, Random random);
  void Meet(Talker& peer) { peer_ = &peer; }
  void Begin() { Look({}); }

  void Look(TimePoint now) override;

  // All is said and answered, or has failed as it should.
  bool done() const;
  // Before memory is compared for the last time.
  void Finish();
  // What the peer reads here is not what it should be.
  void SpoilLibrary();
  const TalkerConfig& config() const { return config_; }
  const std::string& failure() const { return failure_; }
  uint64_t posted() const { return posted_; }
  uint64_t bytes() const { return bytes_; }
  bool failed_as_planned() const { return broken_; }
  // A request told what another one did, which happens only when its answer was lost.
  bool blamed_for_another() const { return blamed_for_another_; }
  // For the message about what never came.
  std::string Describe() const;

 private:
  enum class Kind : uint8_t { kSend, kWrite, kWriteImm, kRead, kCompareSwap, kFetchAdd };
  struct Request {
    uint64_t id = 0;
    Kind kind = Kind::kSend;
    bool signaled = true;
    uint8_t must_fail = 0;  // ibv_wc_status; 0: must not
    uint32_t slot = 0;
    uint32_t length = 0;
    uint64_t stream = 0;
    uint64_t from = 0;      // READ: offset in the peer's library
    uint64_t original = 0;  // atomics: what must come back
    uint64_t result = 0;    // and what the word is then
  };
  // What the other end receives for, in order.
  struct Message {
    uint64_t stream = 0;
    uint32_t length = 0;
    uint32_t immediate = 0;
    bool with_immediate = false;
    bool written = false;  // WRITE with immediate
    uint32_t slot = 0;
  };

  uint64_t Guarded() const { return (config_.max_length + 7) / 8 * 8 + kGuard; }
  uint64_t SourceAt(uint32_t slot) const { return base_ + slot * Guarded(); }
  uint64_t SinkAt(uint32_t slot) const { return base_ + (config_.slots + slot) * Guarded(); }
  uint64_t InboxAt(uint32_t slot) const { return base_ + (2 * config_.slots + slot) * Guarded(); }
  uint64_t TargetAt(uint32_t slot) const { return base_ + (3 * config_.slots + slot) * Guarded(); }
  uint64_t LibraryAt() const { return base_ + 4 * config_.slots * Guarded(); }
  uint64_t CounterAt() const { return LibraryAt() + Guarded(); }
  uint64_t library_stream() const { return StreamOf(pair_, side_, 3, 0); }

  RingEnd::Sges Pieces(uint64_t at, uint32_t length, uint32_t key);
  void PostReceives();
  void PostRequests();
  bool PostOne();
  uint16_t OrderOf(Kind kind);
  void FillSource(Request& request);
  void OnReceive(const rocegw_cqe& cqe);
  // Where the bytes of the receive lie that has completed; nothing when none could.
  std::optional<uint64_t> TakeReceive(const rocegw_cqe& cqe);
  void OnMessage(const rocegw_cqe& cqe, uint64_t at, const Message& message);
  void OnSent(const rocegw_cqe& cqe);
  void OnDone(const Request& request);
  void OnFlushed(const Request& request);
  bool Broken() const {
    return end_.status().state == static_cast<uint32_t>(verbs::QpState::kError);
  }
  // No request under way has a completion of its own.
  bool NothingAnnounced() const;
  bool NothingLeft() const;
  void Fail(const std::string& what);
  void Check(Arena& arena, uint64_t at, uint64_t length, const char* what, uint64_t id);

  static constexpr uint64_t kGuard = 64;

  Host& host_;
  RingEnd& end_;
  Arena& arena_;
  const uint64_t base_;
  const uint32_t pair_;
  const uint32_t side_;
  const TalkerConfig config_;
  Random random_;
  Random order_random_;
  Talker* peer_ = nullptr;
  std::deque<Request> requests_;  // posted and not known to be complete
  std::deque<Message> messages_;  // posted towards the peer, not received
  SharedInbox* const inbox_;
  std::deque<uint64_t> receives_;  // ids, of its own
  uint64_t posted_ = 0;
  uint64_t received_ = 0;
  uint64_t receive_ids_ = 0;
  uint64_t bytes_ = 0;
  uint64_t counter_ = 0;  // of the peer, when everything posted has been done
  bool broken_ = false;   // a request has failed, here or there, and was to
  bool sends_broken_ = false;
  bool blamed_for_another_ = false;
  TimePoint now_;
  std::string failure_;
};

}  // namespace rocegw::sim
