// SPDX-License-Identifier: Apache-2.0
// Donors of the fleet for a session, as the agent of this host names them.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

// Asks for donors that have room for so many bytes on so many replicas. Waits at most about
// `longest`. Errors are those of AskAgent.
StatusOr<std::vector<Settings::Donor>> FindFleetDonors(const Settings& settings, uint64_t bytes,
                                                       uint32_t replicas,
                                                       std::chrono::seconds longest,
                                                       int cancel_fd = -1);

// Returns those of `found` that `known` has not, at most so many.
std::vector<Settings::Donor> NewDonors(const std::vector<Settings::Donor>& known,
                                       const std::vector<Settings::Donor>& found, size_t most);

}  // namespace rocegw::far
