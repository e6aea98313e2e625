// SPDX-License-Identifier: Apache-2.0
// Findings of a preflight about the path between two nodes, from what a pair of probes measured.
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/migration/drive/record.h"
#include "controlplane/migrations/nodes/node_access.h"

namespace rocegw::migrations {

// `path`: "n1 to n2". `answer`: of a path test that succeeded.
std::vector<migration::Finding> PathFindings(const std::string& path, const NodeAnswer& answer);

}  // namespace rocegw::migrations
