// SPDX-License-Identifier: Apache-2.0
// What `connectivity test` found, as text for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {

// A row for each pair; below, why those failed that did, and what to do about it.
std::string ConnectivityView(const std::vector<admin::v1::TestConnectivityResponse>& tests,
                             bool wide);
// kOk when all reach each other, else kConditionFalse.
int CodeOf(const std::vector<admin::v1::TestConnectivityResponse>& tests);

}  // namespace rocegw::cli
