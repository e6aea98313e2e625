// SPDX-License-Identifier: Apache-2.0
// How many REQs of one program may wait for the answer of one listener. Its backlog is bounded, and
// what comes on top of that is lost and repeated, later each time: a storm of connections would end
// with a long tail of those. Who connects takes a place or waits for one. A place is free again
// when its REQ is answered or has to be repeated (the listener is slow, or the REQ is lost). An
// answer makes room for one more; repetitions halve the room, at most once per interval. Of the
// peer nothing is known but that, so this holds towards any. Control thread.
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

  // 0: there is a place, and it is taken. Else the number under which the connection waits.
  uint64_t Enter(const Line& line, uint32_t local_comm_id);
  // Gives a place back.
  void Leave(const Line& line, End end, TimePoint now);
  // It waits no longer.
  void Forget(const Line& line, uint64_t ticket);

  // Connections whose turn has come, each with a place; longest wait first per line. Until the next
  // call.
  const std::vector<uint32_t>& TakeTurns();

  // Room for so many connections more (kept_nodes.h).
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
  Queues queues_;  // those with a place taken or somebody waiting
  KeptNodes<Queues> kept_queues_;
  KeptNodes<Waiting> kept_waiting_;
  std::vector<Line> freed_;  // may have turns to give
  std::vector<uint32_t> turns_;
  uint64_t last_ticket_ = 0;
};

}  // namespace rocegw::cm
