// SPDX-License-Identifier: Apache-2.0
// Connection requests that arrive before their listener exists. Programs that agree on a second
// connection over a first one listen and connect at the same moment (perftest -R does); with
// Linux's rdma_cm the client takes longer. A request without a listener waits a moment before it is
// refused (for ours at a peer: MayBeEarly in teardown.cc). The queue is bounded, and a source with
// fewer requests displaces the oldest of the source with the most. All requests wait equally long,
// so the oldest is due first. Control thread.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::cm {

class EarlyRequests {
 public:
  struct Held {
    wire::CmMad mad;  // REQ
    wire::RxMeta meta;
    Qpn source_qpn;
    TimePoint until;
  };

  explicit EarlyRequests(size_t most) : most_(most) {}

  enum class Verdict : uint8_t { kHeld, kAlready, kFull };
  // Keeps a request; a repetition of a kept request changes nothing. `displaced`: gets the request
  // that made room.
  Verdict Hold(const Held& request, std::optional<Held>& displaced);

  // Removes and returns the requests for this service, oldest first.
  std::vector<Held> TakeFor(uint64_t service_id);
  std::vector<Held> TakeDue(TimePoint now);

  void HandOver(hand_over::StateStream& state);

  TimePoint deadline() const { return held_.empty() ? kNever : held_.front().until; }

 private:
  // Removes the oldest request of the source with the most, if that has more than `source`.
  std::optional<Held> MakeRoom(const wire::Gid& source);

  const size_t most_;
  std::deque<Held> held_;
};

}  // namespace rocegw::cm
