// SPDX-License-Identifier: Apache-2.0
// How much of each limited resource is in use, over all sessions. A grant that does not fit changes
// nothing. Owner: session server, control thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gateway/session/options.h"

namespace rocegw::session {

enum class Resource : uint8_t {
  kSessions,
  kQps,
  kCqs,
  kMrs,
  kPds,
  kCmIds,
  kRegisteredBytes,
  kSegmentBytes,
  kCount,
};

class Usage {
 public:
  explicit Usage(const Limits& l)
      : limit_{l.sessions,         l.qps,          l.cqs, l.mrs, l.pds, l.cm_ids,
               l.registered_bytes, l.segment_bytes} {}

  [[nodiscard]] bool Take(Resource resource, uint64_t amount = 1) {
    const auto i = static_cast<size_t>(resource);
    if (amount > Left(resource)) return false;
    used_[i] += amount;
    return true;
  }
  void Give(Resource resource, uint64_t amount = 1) {
    used_[static_cast<size_t>(resource)] -= amount;
  }

  uint64_t used(Resource resource) const { return used_[static_cast<size_t>(resource)]; }
  uint64_t Left(Resource resource) const {
    const auto i = static_cast<size_t>(resource);
    return used_[i] >= limit_[i] ? 0 : limit_[i] - used_[i];
  }

 private:
  static constexpr size_t kResources = static_cast<size_t>(Resource::kCount);
  std::array<uint64_t, kResources> limit_;
  std::array<uint64_t, kResources> used_{};
};

}  // namespace rocegw::session
