// SPDX-License-Identifier: Apache-2.0
// Connection requests that arrive before their listener exists. Programs that agree on a second
// connection over a first one listen and connect at the same moment (perftest -R does); with
// Linux's rdma_cm the client takes longer. A request without a listener waits a moment before it is
// refused (for ours at a peer: MayBeEarly in teardown.cc). The queue is bounded, and a source with
// fewer requests displaces the oldest of the source with the most. All requests wait equally long,
// so the oldest is due first. Strangers fill the queue, so no request costs a walk through it.
// Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
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

  TimePoint deadline() const { return held_.empty() ? kNever : held_.begin()->second.until; }

 private:
  // Address, CA GUID, communication ID: a request from another address is another one.
  using Name = std::tuple<wire::Gid, uint64_t, uint32_t>;
  using Numbers = std::set<uint64_t>;  // numbers of requests, oldest first
  // Number of requests, age of the oldest, address: the last one has to make room first.
  using Rank = std::tuple<size_t, uint64_t, wire::Gid>;

  static Name NameOf(const Held& request);
  static Rank RankOf(const wire::Gid& source, const Numbers& numbers);
  void Enter(const Held& request);
  Held Remove(uint64_t number);
  // Removes the oldest request of the source with the most, if that has more than `source`.
  std::optional<Held> MakeRoom(const wire::Gid& source);

  const size_t most_;
  uint64_t last_ = 0;
  std::map<uint64_t, Held> held_;  // by number, oldest first
  std::set<Name> names_;
  std::map<wire::Gid, Numbers> by_source_;
  std::set<Rank> ranks_;
};

}  // namespace rocegw::cm
