// SPDX-License-Identifier: Apache-2.0
// Window for the unanswered REQs of one program to one listener. A listener's backlog is bounded;
// REQs beyond it are lost and repeated at growing intervals, so a burst of connections would end in
// a long tail. A REQ takes a slot of the window or waits for one. The slot is free again when the
// REQ is answered or must be repeated (slow listener, or packet loss). An answer grows the window
// by one; repetitions halve it, at most once per interval. This needs no knowledge of the peer, so
// it works with any. Control thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/cm/cm_config.h"
#include "gateway/wire/gid.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::cm {

class RequestWindow {
 public:
  struct Line {
    SessionId owner;
    wire::Gid peer;
    uint64_t service_id = 0;
    auto operator<=>(const Line&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  enum class End : uint8_t { kAnswered, kRepeated, kGone };

  explicit RequestWindow(const RequestWindowConfig& config) : config_(config) {}

  // Takes a slot and returns 0, or returns the ticket under which the connection waits.
  uint64_t Enter(const Line& line, uint32_t local_comm_id);
  // Returns a slot.
  void Leave(const Line& line, End end, TimePoint now);
  // Removes a waiting connection.
  void Forget(const Line& line, uint64_t ticket);

  // Returns the connections that got a slot, longest wait first per listener. Valid until the next
  // call.
  const std::vector<uint32_t>& TakeTurns();

  // Writes or reads the windows of the listeners. The reader then calls Resume for each connection.
  void HandOver(hand_over::StateStream& state);
  // Gives a connection its slot or ticket back. Returns false if that is impossible.
  bool Resume(const Line& line, bool has_slot, uint64_t ticket, uint32_t connection);
  // Returns false if a listener has no taken slot, so that nothing would remove it.
  bool Consistent() const;

  // Keeps memory for so many further connections (kept_nodes.h).
  void Keep(size_t wanted);
  bool Refill(size_t most);

 private:
  using Waiting = std::map<uint64_t, uint32_t>;  // ticket to connection
  struct Queue {
    uint32_t room = 0;
    uint32_t taken = 0;
    TimePoint shrink_after{INT64_MIN};
    Waiting waiting;
  };
  using Queues = std::map<Line, Queue>;

  void EraseIfIdle(Queues::iterator at);

  const RequestWindowConfig config_;
  Queues queues_;  // listeners with a taken slot or a waiting connection
  KeptNodes<Queues> kept_queues_;
  KeptNodes<Waiting> kept_waiting_;
  std::vector<Line> freed_;  // listeners that may have a free slot
  std::vector<uint32_t> turns_;
  uint64_t last_ticket_ = 0;
};

}  // namespace rocegw::cm
