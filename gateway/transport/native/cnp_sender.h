// SPDX-License-Identifier: Apache-2.0
// Sender of congestion notification packets (CNPs, IBTA A17.9). The responder side of a worker
// sends a CNP to a peer whose data arrived CE-marked, at most one per CcProfile::cnp_interval.
// Belongs to one worker.
#pragma once

#include "gateway/flow/congestion.h"
#include "gateway/transport/outbox.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

// Returns the profile that the configuration names, or the preset if it names none.
inline const flow::CcProfile& ProfileOf(const flow::CcConfig& cc) {
  return cc.profile != nullptr ? *cc.profile : flow::CcProfile::Preset();
}

class CnpSender {
 public:
  void Start(TimePoint now) { next_ = now; }
  // Sends a CNP if `packet` carries data, is CE-marked and the interval has passed. A CNP that the
  // port has no buffer for is dropped, because CNPs may be lost.
  void OnPacket(QpContext& qp, Outbox& outbox, const flow::CcConfig& cc,
                const wire::RxPacket& packet, TimePoint now);
  void HandOver(hand_over::StateStream& state);

 private:
  TimePoint next_;
};

}  // namespace rocegw::transport
