// SPDX-License-Identifier: Apache-2.0
#include "agent/supervise/agent_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/series_count.h"

namespace rocegw::agent {
namespace {

TEST(AgentMetrics, Series_AreFewWhateverTheAgentDoes) {
  AgentCounters counters;
  VerdictCounters verdicts;
  const DevicePluginCounters kubelet;
  const AgentMetrics metrics(counters, verdicts, kubelet, nullptr, 1);
  const size_t series = rocegw::testing::SeriesOf(metrics.Collect());
  EXPECT_LE(series, 60u);
  counters.rejections = 100000;
  counters.pushes = 1000000;
  EXPECT_EQ(rocegw::testing::SeriesOf(metrics.Collect()), series);
}

TEST(AgentMetrics, Counters_AreTold) {
  AgentCounters counters;
  VerdictCounters verdicts;
  counters.applied_revision = 77;
  counters.questions = 5;
  const DevicePluginCounters kubelet;
  ClaimCounters claims;
  claims.prepared = 3;
  const AgentMetrics metrics(counters, verdicts, kubelet, &claims, 1);
  const auto families = metrics.Collect();
  const auto value = [&](const std::string& name) {
    const auto family = std::ranges::find(families, name, &prometheus::MetricFamily::name);
    if (family == families.end()) return -1.0;
    const prometheus::ClientMetric& metric = family->metric.at(0);
    return family->type == prometheus::MetricType::Counter ? metric.counter.value
                                                           : metric.gauge.value;
  };
  EXPECT_EQ(value("rocegw_agent_applied_revision"), 77);
  EXPECT_EQ(value("rocegw_agent_questions_total"), 5);
  EXPECT_EQ(value("rocegw_agent_in_sync"), 0);
  EXPECT_EQ(value("rocegw_agent_claims"), 3);
}

}  // namespace
}  // namespace rocegw::agent
