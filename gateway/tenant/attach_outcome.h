// SPDX-License-Identifier: Apache-2.0
// What came of a program that wanted to attach to a pool. One count per connection that greeted or
// was turned away before; who was let in, looked and left counts nowhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rocegw::tenant {

enum class AttachOutcome : uint8_t {
  kAccepted,
  kRefused,  // for a limit, a drain or its identity
  kFailed,   // the gateway, its agent or the versions of the two ends did not allow it
};

inline constexpr std::array<std::string_view, 3> kAttachOutcomeNames = {"accepted", "refused",
                                                                        "failed"};
using AttachCounts = std::array<uint64_t, kAttachOutcomeNames.size()>;

}  // namespace rocegw::tenant
