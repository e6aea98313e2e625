// SPDX-License-Identifier: Apache-2.0
// Result of a program's attempt to attach to a pool. Each connection that sent a greeting, or was
// refused before, counts once. An admitted connection that closes without attaching is not counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rocegw::tenant {

enum class AttachOutcome : uint8_t {
  kAccepted,
  kRefused,  // by a limit, a drain or its identity
  kFailed,   // not possible for the gateway, its agent or the versions of both ends
};

inline constexpr std::array<std::string_view, 3> kAttachOutcomeNames = {"accepted", "refused",
                                                                        "failed"};
using AttachCounts = std::array<uint64_t, kAttachOutcomeNames.size()>;

}  // namespace rocegw::tenant
