// SPDX-License-Identifier: Apache-2.0
// Metrics of a session: donors, replicas, disk copy.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "gateway/far/session/api/rocegw_memory.h"

namespace rocegw::far {

void AddSessionFamilies(std::vector<prometheus::MetricFamily>& families,
                        const rocegw_memory_statistics& session);

}  // namespace rocegw::far
