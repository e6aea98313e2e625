// SPDX-License-Identifier: Apache-2.0
// A program with an endpoint (gateway/include rocegwdv.h) that writes to all others of its world at
// random and knows what must come of it: each request completes once and well, in order where that
// was asked for; each message arrives once, whole, from whom it says, and behind those that it must
// not pass; READs bring what is there; atomics take effect exactly once; nothing else in memory
// changes.
//
// Slots of memory are used by one request at a time. Owned by a scenario; one thread. The first
// thing that is wrong is kept as text, and the Correspondent stops.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/host/host.h"
#include "tests/sim/oracle/arena.h"

namespace rocegw::sim {

struct CorrespondentConfig {
  uint32_t max_length = 6000;  // of a message
  uint32_t slots = 8;          // requests under way, and receives posted; a power of two
  uint64_t messages = 20;
  uint32_t late_receives = 0;  // of 100 looks, those at which no receive is posted
};

class Correspondent final : public Program {
 public:
  // Bytes of memory that one of so many needs.
  static uint64_t Room(const CorrespondentConfig& config, size_t all);
  // `number`: its own, from 0, among `all`. From `base` on it uses the host's memory.
  Correspondent(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t number, size_t all,
                const CorrespondentConfig& config, Random random);
  // It may write to that one, by that handle.
  void Meet(Correspondent& other, uint32_t handle) { others_.push_back({&other, handle}); }
  void Begin() { Look({}); }

  void Look(TimePoint now) override;

  bool done() const {
    return !failure_.empty() || ((posted_ == config_.messages || others_.empty()) &&
                                 requests_.empty() && messages_.empty());
  }
  // Before memory is compared for the last time.
  void Finish() { arena_.ExpectWord(CounterAt(), added_); }
  // What others read here is not what it should be.
  void SpoilLibrary() {
    for (uint8_t& byte : arena_.Bytes(LibraryAt(), config_.max_length)) byte ^= 0x10;
  }
  const std::string& failure() const { return failure_; }
  uint64_t posted() const { return posted_; }
  uint64_t bytes() const { return bytes_; }
  std::string Describe() const;

 private:
  enum class Kind : uint8_t { kSend, kWrite, kWriteImm, kRead, kFetchAdd };
  struct Other {
    Correspondent* who = nullptr;
    uint32_t handle = 0;
  };
  struct Request {
    Kind kind = Kind::kSend;
    bool passes = false;  // asks for no order
    bool waits = false;   // is of strong order
    Correspondent* to = nullptr;
    uint32_t slot = 0;
    uint32_t length = 0;
    uint64_t stream = 0;
    uint64_t from = 0;  // READ: offset in the other's library
  };

  uint64_t Guarded() const { return (config_.max_length + 7) / 8 * 8 + kGuard; }
  uint64_t SourceAt(uint32_t slot) const { return base_ + slot * Guarded(); }
  uint64_t SinkAt(uint32_t slot) const { return base_ + (config_.slots + slot) * Guarded(); }
  uint64_t InboxAt(uint64_t slot) const { return base_ + (2 * config_.slots + slot) * Guarded(); }
  // Where that one's WRITEs go.
  uint64_t TargetAt(uint32_t from, uint32_t slot) const {
    return base_ + ((3 + uint64_t{from}) * config_.slots + slot) * Guarded();
  }
  uint64_t LibraryAt() const { return base_ + (3 + all_) * config_.slots * Guarded(); }
  uint64_t CounterAt() const { return LibraryAt() + Guarded(); }
  uint64_t library_stream() const { return StreamOf(number_, 2, 3, 0); }

  void PostReceives();
  bool PostOne();
  void OnReceive(const rocegw_cqe& cqe);
  void OnSent(const rocegw_cqe& cqe);
  void Check(Arena& arena, uint64_t at, uint64_t length, const char* what, uint64_t id);
  void Fail(const std::string& what);

  static constexpr uint64_t kGuard = 64;

  Host& host_;
  RingEnd& end_;
  Arena& arena_;
  const uint64_t base_;
  const uint32_t number_;
  const size_t all_;
  const CorrespondentConfig config_;
  Random random_;
  std::vector<Other> others_;
  std::map<uint64_t, Request> requests_;  // by id: posted and not known to be complete
  std::map<uint64_t, Request> messages_;  // those that take a receive, until they are received
  std::vector<uint32_t> free_slots_;
  std::vector<uint64_t> free_inboxes_;
  std::set<uint64_t> found_;  // what atomics here have brought to those who asked
  uint64_t adds_ = 0;         // atomics asked for here
  uint64_t added_ = 0;        // and those that are complete
  uint64_t posted_ = 0;
  uint64_t bytes_ = 0;
  TimePoint now_;
  std::string failure_;
};

}  // namespace rocegw::sim
