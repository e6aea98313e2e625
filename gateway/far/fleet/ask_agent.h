// SPDX-License-Identifier: Apache-2.0
// Question of a program to the agent of its host: which donors of the fleet have room for it?
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/fleet/announcement.h"

namespace rocegw::far {

// Waits for the answer, at most about `longest`, and no longer when `cancel_fd` is readable
// (ECANCELED). `folder`: the agent's donors_dir. ENOENT: the controller found no such donors, or
// refused; ECONNREFUSED and others: the agent does not answer.
StatusOr<std::vector<NamedDonor>> AskAgent(const std::string& folder, const DonorQuestion& question,
                                           std::chrono::seconds longest, int cancel_fd = -1);

}  // namespace rocegw::far
