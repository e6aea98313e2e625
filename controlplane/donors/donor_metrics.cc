// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donor_metrics.h"

#include <utility>

#include "controlplane/donors/donor_choice.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::donors {

using process::AddCounter;
using process::AddFamily;
using process::AddGauge;
using process::AddValue;
using prometheus::MetricType;

DonorSums SumsOf(const controllers::FleetView& view) {
  DonorSums sums;
  for (const auto& [name, known] : view.donors) {
    const types::v1::DonorState& state = known.object.status();
    switch (state.health()) {
      case types::v1::DonorState::SERVING:
        if (!known.object.spec().approved()) {
          ++sums.unapproved;
          break;
        }
        ++(state.draining() || IsToDrain(view, known.object) ? sums.draining : sums.serving);
        sums.donated_bytes += state.donated_bytes();
        sums.leased_bytes += state.leased_bytes();
        break;
      case types::v1::DonorState::SILENT:
        ++sums.silent;
        break;
      default:
        ++sums.absent;
    }
  }
  return sums;
}

void AddDonorFamilies(const DonorSums& sums, const DonorReports& reports,
                      const SearchCounts& searches,
                      std::vector<prometheus::MetricFamily>& families) {
  auto& donors = AddFamily(families, "rocegw_donors", "donors of memory of the fleet, by state",
                           MetricType::Gauge);
  for (const auto& [state, count] : {std::pair{"serving", sums.serving},
                                     {"draining", sums.draining},
                                     {"unapproved", sums.unapproved},
                                     {"silent", sums.silent},
                                     {"absent", sums.absent}}) {
    AddValue(donors, {{"state", state}}, static_cast<double>(count));
  }
  AddGauge(families, "rocegw_donors_donated_bytes", "memory of donors that serve or drain",
           sums.donated_bytes);
  AddGauge(families, "rocegw_donors_leased_bytes", "part of it that sessions have leased",
           sums.leased_bytes);
  AddCounter(families, "rocegw_donor_reports_total", "reports of agents about their donors",
             reports.reports());
  auto& refused =
      AddFamily(families, "rocegw_refused_donors_total",
                "reported donors that the controller did not take", MetricType::Counter);
  for (const auto& [reason, why] : {std::pair{"foreign_address", ReportRefusal::kForeignAddress},
                                    {"too_many", ReportRefusal::kTooMany},
                                    {"too_often", ReportRefusal::kTooOften}}) {
    AddValue(refused, {{"reason", reason}}, static_cast<double>(reports.refused(why)));
  }
  auto& answers = AddFamily(families, "rocegw_donor_searches_total",
                            "searches for donors with room, by their end", MetricType::Counter);
  for (const auto& [end, count] : {std::pair{"found", searches.found.load()},
                                   {"no_room", searches.no_room.load()},
                                   {"refused", searches.refused.load()}}) {
    AddValue(answers, {{"end", end}}, static_cast<double>(count));
  }
}

}  // namespace rocegw::donors
