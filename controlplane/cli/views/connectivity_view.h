// SPDX-License-Identifier: Apache-2.0
// Text of the results of `connectivity test`. Pure.
#pragma once

#include <string>
#include <vector>

#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {

// Returns a row per pair; below, the reasons and remedies of failures.
std::string ConnectivityView(const std::vector<admin::v1::TestConnectivityResponse>& tests,
                             bool wide);
// Returns kOk if all reach each other, else kConditionFalse.
int CodeOf(const std::vector<admin::v1::TestConnectivityResponse>& tests);

}  // namespace rocegw::cli
