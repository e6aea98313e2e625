// SPDX-License-Identifier: Apache-2.0
// Check of the network beside RDMA as two hosts measured it. Both send numbers that later code
// subtracts and compares. Pure; any thread.
#pragma once

#include "rocegw/types/v1/connectivity.pb.h"

namespace rocegw::api {

// Returns the measurement with numbers that can be. Counts that contradict each other are left out,
// and its problem says so; a difference of clocks is at most 100 years.
types::v1::PlainPath Bounded(const types::v1::PlainPath& reported);

}  // namespace rocegw::api
