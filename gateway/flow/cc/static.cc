// SPDX-License-Identifier: Apache-2.0
// No congestion control: a fixed window, for paths without congestion and as a baseline for
// measurements. Bytes in flight never exceed the window, except that one packet is always allowed.
#include "gateway/flow/cc/algorithm.h"

namespace rocegw::flow {
namespace {

class Static : public CcBase {
 public:
  static constexpr const char* kName = "static";
  static constexpr const char* kSummary = "a fixed window, whatever the network says";

  void Init(const CcContext&, TimePoint) {}
  SendGate Gate(const CcContext& c, uint64_t in_flight) const {
    return WindowGate(c.window_limit, in_flight);
  }
  uint64_t Window(const CcContext& c, Duration) const {
    return static_cast<uint64_t>(c.window_limit);
  }

  void HandOver(hand_over::StateStream&) {}
};

}  // namespace

ROCEGW_CC_DEFINE(Static);

}  // namespace rocegw::flow
