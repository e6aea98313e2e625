// SPDX-License-Identifier: Apache-2.0
// Common behaviour of the oracle's programs: they keep requests in flight and receives posted, each
// with its own slot of memory, and compare results and messages with what is expected. Subclasses
// know what must complete when.
//
// After a WRITE completes, its target is overwritten at once, so that a late copy of the WRITE is
// detected. Owned by a scenario; one thread. The first error is kept as text, and the Speaker
// stops.
#pragma once

#include <string>

#include "tests/sim/host/host.h"
#include "tests/sim/oracle/arena.h"

namespace rocegw::sim {

struct SpeakerConfig {
  uint32_t max_length = 6000;  // longest message in bytes
  uint32_t slots = 8;          // requests in flight, and receives posted; a power of two
  uint64_t messages = 20;      // requests to post
  uint32_t late_receives = 0;  // percentage of calls in which no receive is posted
};

class Speaker : public Program {
 public:
  void Begin() { Look({}); }
  void Look(TimePoint now) final;

  // Returns true if everything is complete or has failed.
  virtual bool done() const = 0;
  // Called before memory is compared for the last time.
  virtual void Finish() = 0;
  // Returns a description for the report of a missing completion.
  virtual std::string Describe() const = 0;
  // Sabotage: corrupts the memory that others read.
  void SpoilLibrary();
  // Sabotage: after the first failed completion, flushed requests report success.
  void HideFlushes() { hides_flushes_ = true; }
  const std::string& failure() const { return failure_; }
  uint64_t posted() const { return posted_; }
  uint64_t bytes() const { return bytes_; }

 protected:
  enum class Kind : uint8_t { kSend, kWrite, kWriteImm, kRead, kCompareSwap, kFetchAdd };
  struct Request {
    uint64_t id = 0;
    Kind kind = Kind::kSend;
    uint32_t slot = 0;
    uint32_t length = 0;
    uint64_t stream = 0;
    uint64_t from = 0;  // READ: offset in the other's library

    bool takes_receive() const { return kind == Kind::kSend || kind == Kind::kWriteImm; }
  };
  // Memory that a message arrived in.
  struct Receive {
    uint64_t at = 0;
    uint32_t most = 0;  // limit of message bytes
    const uint8_t* in_ring =
        nullptr;         // location of the bytes if the completion says that they are in the ring
    bool tried = false;  // a refused attempt may have left bytes there
  };
  // Part of the world that the speaker uses.
  struct Place {
    uint64_t base = 0;     // offset in the host's memory
    uint64_t number = 0;   // unique number
    uint32_t writer = 0;   // index among the writers to each of the others
    uint32_t writers = 1;  // number of writers to each of the others
  };

  // Returns the bytes of memory needed.
  static uint64_t RoomFor(const SpeakerConfig& config, uint32_t writers) {
    return ((3 + uint64_t{writers}) * config.slots + 2) * Guarded(config.max_length);
  }
  Speaker(Host& host, RingEnd& end, Arena& arena, const Place& place, const SpeakerConfig& config,
          Random random);

  // Behaviour of each kind of speaker:
  virtual std::string Name() const = 0;
  virtual bool Over() const = 0;
  virtual bool LacksReceive() const = 0;
  virtual bool PostReceive() = 0;  // false: there was no space for it
  virtual void PostReceives();
  virtual bool MayPost() const = 0;
  virtual bool PostOne() = 0;  // false: there was no space for it
  // Returns true if no request in flight has a completion of its own.
  virtual bool NothingAnnounced() const = 0;
  virtual void OnReceive(const rocegw_cqe& cqe) = 0;
  virtual void OnSent(const rocegw_cqe& cqe) = 0;

  // Draws a message length, including 0; one in `short_ones` is short.
  uint32_t DrawLength(uint32_t short_ones);
  // Fills in the request and its work request. Returns the local address of its bytes.
  uint64_t Address(Request& request, const Speaker& to, rocegw_send_wqe& wqe);
  // Checks the effects of a completed request; the caller checks results of atomics.
  void CheckDone(const Request& request, Speaker& to);
  void CheckAtomic(const Request& request, uint64_t original);
  // Checks a message that arrived from that writer.
  void CheckMessage(const rocegw_cqe& cqe, const Receive& receive, const Request& message,
                    uint32_t writer, uint64_t id);
  void Fail(const std::string& what);
  bool Broken() const {
    return end_.status().state == static_cast<uint32_t>(verbs::QpState::kError);
  }

  uint64_t StreamOf(uint64_t what, uint64_t message) const {
    return sim::StreamOf(place_.number, what, message);
  }
  uint64_t SinkAt(uint32_t slot) const { return At(1, slot); }
  uint64_t InboxAt(uint32_t slot) const { return At(2, slot); }
  uint64_t TargetAt(uint32_t writer, uint32_t slot) const { return At(3 + writer, slot); }
  uint64_t CounterAt() const { return At(3 + place_.writers, 0) + Guarded(plan_.max_length); }

  Host& host_;
  RingEnd& end_;
  Arena& arena_;
  const Place place_;
  const SpeakerConfig plan_;
  Random random_;
  uint64_t posted_ = 0;

 private:
  uint64_t At(uint32_t part, uint32_t slot) const {
    return place_.base + (uint64_t{part} * plan_.slots + slot) * Guarded(plan_.max_length);
  }
  uint64_t SourceAt(uint32_t slot) const { return At(0, slot); }
  uint64_t LibraryAt() const { return At(3 + place_.writers, 0); }
  uint64_t library_stream() const { return StreamOf(kLibrary, 0); }
  void Falsify(rocegw_cqe& cqe);
  void PostRequests();
  // Check a range, or the slot that begins there.
  void Check(Arena& arena, uint64_t at, uint64_t length, const char* what, uint64_t id);
  void CheckSlot(Arena& arena, uint64_t at, const char* what, uint64_t id) {
    Check(arena, at, Guarded(plan_.max_length), what, id);
  }

  // Purposes of streams:
  static constexpr uint64_t kSent = 0;
  static constexpr uint64_t kWritten = 1;
  static constexpr uint64_t kLibrary = 2;

  uint64_t bytes_ = 0;
  TimePoint now_;
  std::string failure_;
  bool hides_flushes_ = false;
  bool has_failed_ = false;  // a completion has failed
};

}  // namespace rocegw::sim
