// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/shared_pool/block_donor_metrics.h"

#include "gateway/process/http/metric_families.h"

namespace rocegw::far {

using process::AddFamily;
using process::AddGauge;
using process::AddValue;
using prometheus::MetricType;

std::vector<prometheus::MetricFamily> BlockDonorMetrics::Collect() const {
  const BlockDonorCounts counts = donor_.counts();
  std::vector<prometheus::MetricFamily> families;
  AddGauge(families, "rocegw_memory_pool_donated_bytes",
           "Memory that this host offers to a shared block pool", counts.donated_bytes);
  AddGauge(families, "rocegw_memory_pool_open_bytes",
           "Memory of the table that members use now; 0: the donor is closed, drained or without "
           "approval or quota",
           counts.open_bytes);
  AddGauge(families, "rocegw_memory_pool_closing",
           "1 while members are to leave the donor, which then forgets the values",
           counts.closing ? 1 : 0);
  AddGauge(families, "rocegw_memory_pool_blocks", "Blocks of that memory", counts.blocks);
  AddGauge(families, "rocegw_memory_pool_values", "Blocks that have a value", counts.values);
  AddGauge(families, "rocegw_memory_pool_connections",
           "Queue pairs of processes; those that use endpoints have no connection",
           counts.connections);
  auto& joins = AddFamily(families, "rocegw_memory_pool_joins_total",
                          "Times that a process joined the pool, by path", MetricType::Counter);
  AddValue(joins, {{"path", "endpoint"}}, static_cast<double>(counts.joined_endpoint));
  AddValue(joins, {{"path", "queue_pair"}}, static_cast<double>(counts.joined_queue_pair));
  auto& refusals = AddFamily(families, "rocegw_memory_pool_refused_joins_total",
                             "Times that a process was refused: another secret, too many queue "
                             "pairs, a donor that is closed, or another reason",
                             MetricType::Counter);
  AddValue(refusals, {{"reason", "secret"}}, static_cast<double>(counts.refused_secret));
  AddValue(refusals, {{"reason", "limit"}}, static_cast<double>(counts.refused_limit));
  AddValue(refusals, {{"reason", "closed"}}, static_cast<double>(counts.refused_closed));
  AddValue(refusals, {{"reason", "other"}}, static_cast<double>(counts.refused_other));
  process::AddProcessFamilies(families, start_ns_);
  return families;
}

}  // namespace rocegw::far
