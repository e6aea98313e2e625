// SPDX-License-Identifier: Apache-2.0
// Orders to donors of memory: drain and undrain, approve and revoke. One thread.
#pragma once

#include <string>

#include "controlplane/cli/program.h"

namespace rocegw::cli {

// `donor`: "GATEWAY/DONOR". `wait`: until sessions have moved their data away. Return the exit
// status.
int DrainDonor(Program& program, const std::string& donor, bool wait);
int UndrainDonor(Program& program, const std::string& donor);
int ApproveDonor(Program& program, const std::string& donor);
int RevokeDonor(Program& program, const std::string& donor);

}  // namespace rocegw::cli
