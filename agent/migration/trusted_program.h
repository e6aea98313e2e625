// SPDX-License-Identifier: Apache-2.0
// Adapters that the agent may run. A controller names an adapter, and only programs that this
// host's administrator put into one folder are run. Any thread.
#pragma once

#include <string>

#include "gateway/base/status.h"

namespace rocegw::agent {

// Returns the path of the adapter in the folder. EPERM: a user other than the agent's and root
// could change the program. ENOENT: there is none. EINVAL: `name` is no DNS label.
StatusOr<std::string> TrustedProgram(const std::string& folder, const std::string& name);

}  // namespace rocegw::agent
