// SPDX-License-Identifier: Apache-2.0
// Congestion control settings that many flows share: parameter values of all algorithms, the link
// speed, and how congestion is notified to peers. A profile is made once from the configuration,
// never changes while a flow points to it, and outlives those flows; any thread may read it.
// Parameters are integers in the unit that their table gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/base/time.h"

namespace rocegw::flow {

enum class CcKind : uint8_t {
#define ROCEGW_CC_ALGORITHM(name) k##name,
#include "gateway/flow/cc/algorithms.def"
#undef ROCEGW_CC_ALGORITHM
  kCount
};

inline constexpr size_t kCcKinds = static_cast<size_t>(CcKind::kCount);
inline constexpr size_t kMaxCcParameters = 20;

struct CcParameter {
  const char* name;
  const char* unit;  // "" for plain numbers
  uint32_t preset;
  uint32_t least;
  uint32_t most;
  const char* meaning;
};

struct CcProfile {
  // Sets every parameter to its preset.
  CcProfile();
  // Returns the profile of flows that were configured without one.
  static const CcProfile& Preset();

  // Sets a parameter. Returns false, without a change, if there is no such parameter or the value
  // is out of range.
  bool Set(CcKind kind, const char* parameter, uint64_t value);

  uint64_t link_bits_per_second = 0;  // speed of the local port; 0: unknown
  // Time that a late sender may catch up in one burst: timers are coarse, and packets that leave
  // together cost less.
  Duration burst = Microseconds(128);

  // Packets of flows whose algorithm uses marks are sent with ECT(0).
  bool ecn = true;
  // Notification point: least interval between two CNPs. The presets of RNICs' reaction points
  // assume the rate at which RNICs send CNPs.
  bool send_cnps = true;
  Duration cnp_interval = Microseconds(4);
  uint8_t cnp_traffic_class = 48 << 2 | 2;  // DSCP 48, ECT(0)

  uint32_t values[kCcKinds][kMaxCcParameters] = {};

  bool operator==(const CcProfile&) const = default;
};

}  // namespace rocegw::flow
