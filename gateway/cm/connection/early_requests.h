// SPDX-License-Identifier: Apache-2.0
// Connection requests that came before their listener. Programs that agree on a second connection
// over a first one begin to listen and to connect at the same moment (perftest -R does); with
// Linux's rdma_cm the client needs longer. A request that finds nobody waits a moment before it is
// refused (ours at a peer: MayBeEarly in teardown.cc). Bounded; all wait equally long, so the
// oldest is due first. Control thread.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

class EarlyRequests {
 public:
  struct Held {
    wire::CmMad mad;  // a REQ
    wire::RxMeta meta;
    Qpn source_qpn;
    TimePoint until;
  };

  explicit EarlyRequests(size_t most) : most_(most) {}

  enum class Verdict : uint8_t { kHeld, kAlready, kFull };
  // The same request again changes nothing.
  Verdict Hold(const Held& request);

  // Those that ask for this service, oldest first; they are forgotten here.
  std::vector<Held> TakeFor(uint64_t service_id);
  std::vector<Held> TakeDue(TimePoint now);

  TimePoint deadline() const { return held_.empty() ? kNever : held_.front().until; }

 private:
  const size_t most_;
  std::deque<Held> held_;
};

}  // namespace rocegw::cm
