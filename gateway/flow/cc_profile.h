// SPDX-License-Identifier: Apache-2.0
// What many flows share of congestion control: the values of all algorithms' parameters, the link's
// speed, and how congestion is told to peers. A profile is made once from the configuration, never
// changes while a flow points to it, and outlives those flows; any thread may read it.
// Parameters are whole numbers in the unit that their table says.
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
  // Every parameter at its preset.
  CcProfile();
  // One for flows that were configured without any.
  static const CcProfile& Preset();

  // False: no such parameter, or out of its bounds; nothing changes then.
  bool Set(CcKind kind, const char* parameter, uint64_t value);

  uint64_t link_bits_per_second = 0;  // of the own port; 0: not known
  // A sender that comes late makes up for that much at once: timers are coarse, and packets that
  // leave together cost less.
  Duration burst = Microseconds(128);

  // Packets of flows whose algorithm reacts to marks say so to switches (ECT(0)).
  bool ecn = true;
  // Notification point: CNPs of one flow are at least so far apart. RNICs' presets for reacting to
  // them count on as many as RNICs send.
  bool send_cnps = true;
  Duration cnp_interval = Microseconds(4);
  uint8_t cnp_traffic_class = 48 << 2 | 2;  // DSCP 48, ECT(0)

  uint32_t values[kCcKinds][kMaxCcParameters] = {};

  bool operator==(const CcProfile&) const = default;
};

}  // namespace rocegw::flow
