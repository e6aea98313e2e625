// SPDX-License-Identifier: Apache-2.0
// Metrics of an agent: its connections, desired and running configuration, its certificate. Any
// thread; the agent's counters outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/expose/attach_verdicts.h"
#include "agent/kube/device_plugin.h"
#include "agent/kube/dra/claim_counters.h"
#include "agent/supervise/agent.h"
#include "gateway/process/http/metrics_server.h"

namespace rocegw::agent {

class AgentMetrics final : public process::MetricsSource {
 public:
  // `start_ns`: start of the process, since 1970. `kubelet`: all zero outside of a cluster.
  // `claims`: nullptr: this agent prepares no claims.
  AgentMetrics(const AgentCounters& counters, const VerdictCounters& verdicts,
               const DevicePluginCounters& kubelet, const ClaimCounters* claims, int64_t start_ns)
      : counters_(counters),
        verdicts_(verdicts),
        kubelet_(kubelet),
        claims_(claims),
        start_ns_(start_ns) {}
  std::vector<prometheus::MetricFamily> Collect() const override;
  bool Alive() const override { return true; }

 private:
  const AgentCounters& counters_;
  const VerdictCounters& verdicts_;
  const DevicePluginCounters& kubelet_;
  const ClaimCounters* const claims_;
  const int64_t start_ns_;
};

}  // namespace rocegw::agent
