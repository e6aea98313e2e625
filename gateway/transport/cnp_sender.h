// SPDX-License-Identifier: Apache-2.0
// Tells who sends data that it has met congestion on its way here (IBTA A17.9): now and then, of
// one queue pair. Belongs to its worker.
#pragma once

#include "gateway/flow/congestion.h"
#include "gateway/transport/outbox.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

// The profile that the configuration names.
inline const flow::CcProfile& ProfileOf(const flow::CcConfig& cc) {
  return cc.profile != nullptr ? *cc.profile : flow::CcProfile::Preset();
}

class CnpSender {
 public:
  void Start(TimePoint now) { next_ = now; }
  // Looks at a packet; a CNP that cannot leave at once is as good as lost, which CNPs may be.
  void OnPacket(QpContext& qp, Outbox& outbox, const flow::CcConfig& cc,
                const wire::RxPacket& packet, TimePoint now);

 private:
  TimePoint next_;
};

}  // namespace rocegw::transport
