// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/donor_metrics.h"

#include "gateway/process/http/metric_families.h"

namespace rocegw::far {

using process::AddCounter;
using process::AddFamily;
using process::AddGauge;
using process::AddValue;
using prometheus::MetricType;

std::vector<prometheus::MetricFamily> DonorMetrics::Collect() const {
  const DonorCounts counts = donor_.counts();
  std::vector<prometheus::MetricFamily> families;
  AddGauge(families, "rocegw_memory_donated_bytes", "Memory that this host offers",
           counts.donated_bytes);
  AddGauge(families, "rocegw_memory_leased_bytes", "Memory that sessions have leased",
           counts.leased_bytes);
  AddGauge(families, "rocegw_memory_leases", "Leases of all sessions", counts.leases);
  AddGauge(families, "rocegw_memory_sessions", "Connected sessions", counts.sessions);
  AddGauge(families, "rocegw_memory_draining",
           "1 while the donor drains: it grants nothing, sessions move their data",
           counts.draining ? 1 : 0);
  auto& tenants = AddFamily(families, "rocegw_memory_tenant_leased_bytes",
                            "Memory that the sessions of a tenant have leased", MetricType::Gauge);
  for (const auto& [tenant, bytes] : counts.leased_by_tenant) {
    AddValue(tenants, {{"tenant", tenant}}, static_cast<double>(bytes));
  }
  AddCounter(families, "rocegw_memory_sessions_accepted_total", "Sessions that connected",
             counts.sessions_accepted);
  AddCounter(families, "rocegw_memory_sessions_refused_total",
             "Sessions that were refused: no quota, too many of all, of the tenant or of the host, "
             "or another protocol",
             counts.sessions_refused);
  AddCounter(families, "rocegw_memory_sessions_expired_total",
             "Sessions whose leases ended because they were not renewed in time",
             counts.sessions_expired);
  AddCounter(families, "rocegw_memory_sessions_continued_total",
             "Sessions that continued by another connection, because their gateway was restarted",
             counts.sessions_continued);
  AddCounter(families, "rocegw_memory_leases_granted_total", "Leases that were granted",
             counts.leases_granted);
  AddCounter(families, "rocegw_memory_leases_refused_total",
             "Leases that were refused: donated memory, quota or number exhausted, or no size of a "
             "slab",
             counts.leases_refused);
  AddCounter(families, "rocegw_memory_connections_ended_total",
             "Connections that were not established yet and ended because later ones came",
             counts.connections_ended);
  process::AddProcessFamilies(families, start_ns_);
  return families;
}

}  // namespace rocegw::far
