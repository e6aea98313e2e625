// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/gateway_metrics.h"

#include <array>
#include <chrono>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "gateway/metrics/drop_reason.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/port/port_counters.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::service {
namespace {

using process::AddFamily;
using process::AddSingle;
using process::AddValue;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Both queries together must fit into a scrape timeout of one second.
constexpr std::chrono::milliseconds kPatience(400);

double At(const std::vector<uint64_t>& values, size_t i) {
  return i < values.size() ? static_cast<double>(values[i]) : 0;
}

void AddDrops(MetricFamily& drops, const std::vector<uint64_t>& counts, const std::string& worker) {
  std::array<double, metrics::kDropReasonCount> sums{};
  for (size_t i = 1; i < metrics::kDropReasonCount; ++i) {
    const auto reason = static_cast<metrics::DropReason>(i);
    sums[static_cast<size_t>(metrics::DropReasonOnPage(reason))] += At(counts, i);
  }
  for (size_t i = 1; i < metrics::kDropReasonCount; ++i) {
    const auto reason = static_cast<metrics::DropReason>(i);
    if (metrics::DropReasonOnPage(reason) != reason) continue;
    AddValue(drops,
             {{"reason", metrics::DropReasonName(reason)},
              {"side", metrics::DropReasonSide(reason)},
              {"worker", worker}},
             sums[i]);
  }
}

void AddCounters(std::vector<MetricFamily>& families, const session::StateSnapshot& snapshot) {
  size_t index = 0;
  for (const metrics::CounterInfo& info : metrics::AllCounters()) {
    MetricFamily& family = AddFamily(families, "rocegw_" + metrics::CounterName(info) + "_total",
                                     info.help, MetricType::Counter);
    for (const auto& row : snapshot.workers) {
      AddValue(family, {{"worker", std::to_string(row.index)}}, At(row.counters, index));
    }
    ++index;
  }
  MetricFamily& drops =
      AddFamily(families, "rocegw_drops_total", "received packets that were not used, by reason",
                MetricType::Counter);
  for (const auto& row : snapshot.workers) AddDrops(drops, row.drops, std::to_string(row.index));
  AddDrops(drops, snapshot.control_drops, "control");
}

void AddPortCounters(std::vector<MetricFamily>& families, const session::StateSnapshot& snapshot) {
  size_t index = 0;
  for (const port::PortCounterInfo& info : port::kPortCounters) {
    MetricFamily& family = AddFamily(families, std::string("rocegw_port_") + info.name + "_total",
                                     info.help, MetricType::Counter);
    for (const auto& row : snapshot.port_queues) {
      AddValue(family, {{"port", row.port}, {"worker", std::to_string(row.worker)}},
               At(row.counters, index));
    }
    ++index;
  }
}

void AddGauges(std::vector<MetricFamily>& families, const session::StateSnapshot& snapshot) {
#define ROCEGW_GAUGE(name, total, help)                         \
  AddSingle(families, "rocegw_" #name, help, MetricType::Gauge, \
            static_cast<double>(snapshot.totals.total));
#include "gateway/metrics/gauges.def"
#undef ROCEGW_GAUGE
  MetricFamily& qps = AddFamily(families, "rocegw_worker_queue_pairs", "queue pairs of one worker",
                                MetricType::Gauge);
  for (const auto& row : snapshot.workers) {
    AddValue(qps, {{"worker", std::to_string(row.index)}}, row.qps);
  }
  MetricFamily& channels =
      AddFamily(families, "rocegw_worker_channels",
                "channels of one worker to other gateways' workers", MetricType::Gauge);
  for (const auto& row : snapshot.workers) {
    AddValue(channels, {{"worker", std::to_string(row.index)}}, row.channels);
  }
  MetricFamily& silent = AddFamily(
      families, "rocegw_worker_silent_seconds",
      "how long a worker has owed the control thread answers without giving any; 0: it owes none",
      MetricType::Gauge);
  for (const auto& row : snapshot.workers) {
    AddValue(silent, {{"worker", std::to_string(row.index)}},
             static_cast<double>(row.silent.ns) / 1e9);
  }
  MetricFamily& engine =
      AddFamily(families, "rocegw_worker_copy_engine_minimum_bytes",
                "shortest payload that a worker gives to its copy engine; 0: it uses none",
                MetricType::Gauge);
  for (const auto& row : snapshot.workers) {
    AddValue(engine, {{"worker", std::to_string(row.index)}}, row.engine_minimum);
  }
  MetricFamily& ports =
      AddFamily(families, "rocegw_port_up", "1: the port can send and receive", MetricType::Gauge);
  for (const auto& row : snapshot.ports) {
    AddValue(ports, {{"device", row.device}, {"mode", row.mode}, {"port", row.name}},
             row.up ? 1 : 0);
  }
}

// Splits "tenants/T/pools/P" into two labels.
std::vector<ClientMetric::Label> PoolLabels(const std::string& name) {
  const size_t tenant = name.find('/') + 1;
  const size_t end = name.find('/', tenant);
  const size_t pool = name.rfind('/') + 1;
  return {{"pool", name.substr(pool)}, {"tenant", name.substr(tenant, end - tenant)}};
}
std::vector<ClientMetric::Label> PoolLabels(const std::string& name, const char* key,
                                            std::string_view value) {
  std::vector<ClientMetric::Label> labels = PoolLabels(name);
  labels.insert(labels.begin(), {key, std::string(value)});
  return labels;
}

void AddHistogram(MetricFamily& family, std::vector<ClientMetric::Label> labels,
                  const metrics::DurationHistogram& histogram) {
  ClientMetric metric;
  metric.label = std::move(labels);
  uint64_t below = 0;
  for (size_t i = 0; i < metrics::DurationHistogram::kBounds.size(); ++i) {
    below += histogram.counts()[i];
    metric.histogram.bucket.push_back(
        {below, static_cast<double>(metrics::DurationHistogram::kBounds[i]) * 1e-9});
  }
  metric.histogram.bucket.push_back({histogram.count(), std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = histogram.count();
  metric.histogram.sample_sum = static_cast<double>(histogram.sum_ns()) * 1e-9;
  family.metric.push_back(std::move(metric));
}

// Adds families of pools that keep queue pairs ready.
void AddReady(std::vector<MetricFamily>& families, const session::StateSnapshot& snapshot) {
  const auto add = [&](const char* name, const char* help, MetricType type,
                       uint64_t (*value)(const session::ReadyRow&)) {
    MetricFamily& family = AddFamily(families, name, help, type);
    for (const session::PoolRow& row : snapshot.pools) {
      if (!row.leaving && row.ready.wanted != 0)
        AddValue(family, PoolLabels(row.name), static_cast<double>(value(row.ready)));
    }
  };
  add("rocegw_pool_ready_qps", "queue pairs that a pool keeps ready now", MetricType::Gauge,
      [](const session::ReadyRow& row) { return uint64_t{row.ready}; });
  add("rocegw_pool_ready_bytes", "shared memory that a pool keeps ready", MetricType::Gauge,
      [](const session::ReadyRow& row) { return row.bytes; });
  add("rocegw_pool_ready_hits_total", "queue pairs that came out of what was ready",
      MetricType::Counter, [](const session::ReadyRow& row) { return row.hits; });
  add("rocegw_pool_ready_misses_total",
      "queue pairs that had to be made although their pool keeps some ready", MetricType::Counter,
      [](const session::ReadyRow& row) { return row.misses; });
}

// Adds families of pools that have samples.
void AddTimes(std::vector<MetricFamily>& families, const session::StateSnapshot& snapshot,
              const char* name, const char* help,
              const metrics::DurationHistogram session::PoolRow::*times) {
  MetricFamily& family = AddFamily(families, name, help, MetricType::Histogram);
  for (const session::PoolRow& row : snapshot.pools) {
    if (!row.leaving && (row.*times).count() != 0)
      AddHistogram(family, PoolLabels(row.name), row.*times);
  }
}

// Adds pool families. A leaving pool and a new one of its name form one series: the sum of what
// both hold and refused.
void AddPools(std::vector<MetricFamily>& families, const session::StateSnapshot& snapshot) {
  std::map<std::string, session::PoolRow> pools;
  for (const session::PoolRow& row : snapshot.pools) {
    const auto [known, is_new] = pools.try_emplace(row.name, row);
    if (!is_new) {
      known->second.sent_bytes += row.sent_bytes;
      known->second.sent_packets += row.sent_packets;
      for (size_t i = 0; i < row.attaches.size(); ++i) known->second.attaches[i] += row.attaches[i];
    }
    for (size_t i = 0; !is_new && i < row.limits.size(); ++i) {
      known->second.limits[i].used += row.limits[i].used;
      known->second.limits[i].refused += row.limits[i].refused;
    }
  }
  const auto add = [&](const char* name, const char* help, MetricType type, auto value) {
    MetricFamily& family = AddFamily(families, name, help, type);
    for (const auto& [pool, row] : pools) {
      for (const session::LimitRow& limit : row.limits) {
        if (const auto number = value(limit))
          AddValue(family, PoolLabels(pool, "limit", limit.limit), static_cast<double>(*number));
      }
    }
  };
  using Number = std::optional<uint64_t>;
  add("rocegw_pool_used", "what a pool holds", MetricType::Gauge,
      [](const session::LimitRow& limit) {
        return limit.limit.ends_with("_per_second") || limit.limit == "allowed_peers" ||
                       limit.limit == "identity"
                   ? Number()
                   : Number(limit.used);
      });
  add("rocegw_pool_committed", "what a pool is always granted, if any", MetricType::Gauge,
      [](const session::LimitRow& limit) {
        return limit.committed == 0 ? Number() : Number(limit.committed);
      });
  add("rocegw_pool_peak", "the most that a pool is granted; limits of its own only",
      MetricType::Gauge, [](const session::LimitRow& limit) {
        return limit.peak == tenant::kUnlimited ? Number() : Number(limit.peak);
      });
  add("rocegw_pool_refused_total",
      "requests of a pool's programs refused, or sending held back, for a limit",
      MetricType::Counter, [](const session::LimitRow& limit) { return Number(limit.refused); });
  const auto add_sent = [&](const char* name, const char* help, uint64_t session::PoolRow::*value) {
    MetricFamily& family = AddFamily(families, name, help, MetricType::Counter);
    for (const auto& [pool, row] : pools)
      AddValue(family, PoolLabels(pool), static_cast<double>(row.*value));
  };
  add_sent("rocegw_pool_sent_bytes_total", "sent by a pool's queue pairs, headers included",
           &session::PoolRow::sent_bytes);
  add_sent("rocegw_pool_sent_packets_total", "sent by a pool's queue pairs",
           &session::PoolRow::sent_packets);
  MetricFamily& attaches = AddFamily(
      families, "rocegw_pool_attaches_total",
      "programs that came to a pool: accepted; refused for a limit, a drain or their identity; "
      "failed, because gateway, agent or the versions of the two ends did not allow it",
      MetricType::Counter);
  for (const auto& [pool, row] : pools) {
    for (size_t i = 0; i < row.attaches.size(); ++i) {
      AddValue(attaches, PoolLabels(pool, "outcome", tenant::kAttachOutcomeNames[i]),
               static_cast<double>(row.attaches[i]));
    }
  }
}

void AddDiscovery(std::vector<MetricFamily>& families, const session::DiscoveryRow& row) {
  MetricFamily& questions = AddFamily(
      families, "rocegw_discovery_questions_total",
      "peer addresses asked whether they are gateways, by what came of it", MetricType::Counter);
  const std::pair<const char*, uint64_t> outcomes[] = {{"gateway", row.answered_as_gateway},
                                                       {"not_asked", row.not_asked},
                                                       {"refused", row.refused},
                                                       {"silent", row.silent}};
  for (const auto& [outcome, count] : outcomes)
    AddValue(questions, {{"outcome", outcome}}, static_cast<double>(count));
  MetricFamily& answers =
      AddFamily(families, "rocegw_discovery_answers_total",
                "questions of other gateways, answered or not because they came too fast",
                MetricType::Counter);
  AddValue(answers, {{"sent", "no"}}, static_cast<double>(row.not_answered));
  AddValue(answers, {{"sent", "yes"}}, static_cast<double>(row.answers));
  AddValue(AddFamily(families, "rocegw_discovery_unauthenticated_total",
                     "gateways that answered without a tag although this one has keys of the fleet",
                     MetricType::Counter),
           {}, static_cast<double>(row.unauthenticated));
  MetricFamily& peers = AddFamily(families, "rocegw_discovery_peers",
                                  "peer addresses by what they are known to be", MetricType::Gauge);
  AddValue(peers, {{"kind", "gateway"}}, static_cast<double>(row.gateways));
  AddValue(peers, {{"kind", "rdma_device"}}, static_cast<double>(row.rdma_devices));
  MetricFamily& members = AddFamily(
      families, "rocegw_fleet_peer_addresses",
      "addresses of the fleet's other gateways, by whether they answer as gateways when asked",
      MetricType::Gauge);
  AddValue(members, {{"answers", "no"}}, static_cast<double>(row.members_mute));
  AddValue(members, {{"answers", "not_asked"}}, static_cast<double>(row.members_not_asked));
  AddValue(members, {{"answers", "yes"}}, static_cast<double>(row.members_answering));
}

void AddTakeOvers(std::vector<MetricFamily>& families, const session::TakeOverRow& row) {
  AddHistogram(AddFamily(families, "rocegw_take_over_seconds",
                         "pauses of the service while a new process replaced the running one, over "
                         "all processes of the gateway",
                         MetricType::Histogram),
               {}, row.blackouts);
  AddSingle(families, "rocegw_take_over_descriptors_total",
            "descriptors that a process handed over to its successor", MetricType::Counter,
            static_cast<double>(row.descriptors));
  MetricFamily& refusals =
      AddFamily(families, "rocegw_take_over_refusals_total",
                "processes that should replace the running one, and were refused or failed",
                MetricType::Counter);
  for (const auto& [reason, times] : row.refusals)
    AddValue(refusals, {{"reason", reason}}, static_cast<double>(times));
}

void AddPeers(std::vector<MetricFamily>& families,
              const std::map<std::string, session::PeerRow>& peers) {
  const auto add = [&](const char* name, const char* help, MetricType type, const auto& value) {
    MetricFamily& family = AddFamily(families, name, help, type);
    for (const auto& [peer, row] : peers)
      AddValue(family, {{"peer", peer}}, static_cast<double>(value(row)));
  };
#define ROCEGW_PEER_GAUGE(name, field, help)         \
  add("rocegw_peer_" #name, help, MetricType::Gauge, \
      [](const session::PeerRow& row) { return row.field; });
#define ROCEGW_PEER_COUNTER(name, field, help)                  \
  add("rocegw_peer_" #name "_total", help, MetricType::Counter, \
      [](const session::PeerRow& row) { return row.field; });
#include "gateway/metrics/peers.def"
#undef ROCEGW_PEER_COUNTER
#undef ROCEGW_PEER_GAUGE
}

}  // namespace

std::optional<session::StateSnapshot> GatewayMetrics::Ask(const session::StateQuery& query) const {
  // Shared, because an answer may arrive after the wait ended.
  auto promise = std::make_shared<std::promise<session::StateSnapshot>>();
  std::future<session::StateSnapshot> answer = promise->get_future();
  source_.Snapshot(query, [promise](session::StateSnapshot snapshot) {
    promise->set_value(std::move(snapshot));
  });
  if (answer.wait_for(kPatience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

std::vector<MetricFamily> GatewayMetrics::Collect() const {
  std::vector<MetricFamily> families;
  auto snapshot = Ask({.peers = true, .pools = true});
  // Peers need answers of workers. If a worker hangs, the other values are needed even more.
  if (!snapshot) snapshot = Ask({.pools = true});
  if (!snapshot) return families;
  AddValue(AddFamily(families, "rocegw_build_info", "version of the running gateway; always 1",
                     MetricType::Gauge),
           {{"compiler", identity_.compiler},
            {"revision", identity_.revision},
            {"version", identity_.version}},
           1);
  AddSingle(families, "rocegw_ready", "1: running with a configuration", MetricType::Gauge,
            readiness_.reason().empty() ? 1 : 0);
  AddGauges(families, *snapshot);
  AddPools(families, *snapshot);
  AddReady(families, *snapshot);
  AddTimes(families, *snapshot, "rocegw_pool_set_up_seconds",
           "what the gateway spent on a queue pair from its creation until it could send",
           &session::PoolRow::set_up);
  AddTimes(families, *snapshot, "rocegw_pool_operation_seconds",
           "requests of connected queue pairs and endpoints, from when the gateway took them until "
           "they completed well",
           &session::PoolRow::operations);
  AddDiscovery(families, snapshot->discovery);
  AddTakeOvers(families, snapshot->take_overs);
  AddPeers(families, snapshot->peers);
  AddCounters(families, *snapshot);
  AddPortCounters(families, *snapshot);
  process::AddProcessFamilies(families, identity_.start_ns);
  return families;
}

}  // namespace rocegw::service
