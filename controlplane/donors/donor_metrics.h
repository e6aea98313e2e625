// SPDX-License-Identifier: Apache-2.0
// Metrics of the controller about donors: their number by health, their memory, reports and
// searches. Any thread.
#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <vector>

#include "controlplane/donors/donor_reports.h"
#include "controlplane/donors/donors_service.h"

namespace rocegw::donors {

// Sums over the donors of the fleet.
struct DonorSums {
  uint64_t serving = 0;  // and not draining
  uint64_t draining = 0;
  uint64_t unapproved = 0;
  uint64_t silent = 0;
  uint64_t absent = 0;
  // Memory of donors that serve or drain; others have no approval.
  uint64_t donated_bytes = 0;
  uint64_t leased_bytes = 0;
};
DonorSums SumsOf(const controllers::FleetView& view);

void AddDonorFamilies(const DonorSums& sums, const DonorReports& reports,
                      const SearchCounts& searches,
                      std::vector<prometheus::MetricFamily>& families);

}  // namespace rocegw::donors
