// SPDX-License-Identifier: Apache-2.0
// Names and addresses under which others know this controller's host and process. Start-up only,
// one thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/server/config.h"

namespace rocegw::server {

// Returns the addresses of this host for others, "host:port"; at least one.
std::vector<std::string> OwnAddresses(const Config& config, int port);

// Returns the addresses of the fleet for joining hosts, "host:port".
std::vector<std::string> ReachableAt(const Config& config, int port);

// Returns a name of this process for display: host and process id.
std::string Candidate();

// Returns an id of this process, different after each start.
std::string ReplicaId();

}  // namespace rocegw::server
