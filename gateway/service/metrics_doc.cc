// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/metrics.md: the metrics of a gateway's scrape, taken from the code that
// produces them. Usage: metrics_doc
#include <cstdio>
#include <string>

#include "gateway/metrics/drop_reason.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/service/gateway_metrics.h"

namespace rocegw::service {
namespace {

// State with one worker and one port, so that every family has a sample with its labels.
class OneOfEach : public StateSource {
 public:
  void Snapshot(const session::StateQuery&,
                std::function<void(session::StateSnapshot)> done) override {
    session::StateSnapshot state;
    state.workers.emplace_back();
    state.ports.emplace_back();
    state.port_queues.emplace_back();
    session::PoolRow& pool = state.pools.emplace_back();
    pool.name = "tenants/t/pools/p";
    pool.limits = {{"qps", 1, 1, 1, 1}};
    pool.ready.wanted = 1;
    pool.set_up.Add(Microseconds(1));
    pool.operations.Add(Microseconds(1));
    state.peers["g"].channels_rtt = 1;
    state.take_overs.refusals = {{"sessions", 1}};
    done(std::move(state));
  }
};

void Print() {
  const GatewayIdentity identity{"", "", "", "", 0, [] { return int64_t{0}; }};
  const Readiness readiness;
  OneOfEach source;
  const GatewayMetrics metrics(identity, readiness, source);
  std::printf(
      "<!-- Made by scripts/update_metrics_doc; edit the lists in gateway/metrics instead. -->\n"
      "# Metrics\n\n"
      "`rocegwd` serves these at `http://127.0.0.1:7474/metrics` (key `metrics.address`).\n"
      "Labels never name a queue pair, an address or a process.\n\n"
      "Each entry: the name, (the type; the labels), the meaning.\n\n");
  for (const prometheus::MetricFamily& family : metrics.Collect()) {
    std::string labels;
    if (!family.metric.empty()) {
      for (const auto& label : family.metric.front().label) {
        labels += (labels.empty() ? "; " : ", ") + label.name;
      }
    }
    std::printf("- `%s` (%s%s): %s\n", family.name.c_str(),
                family.type == prometheus::MetricType::Counter     ? "counter"
                : family.type == prometheus::MetricType::Histogram ? "histogram"
                                                                   : "gauge",
                labels.c_str(), family.help.c_str());
  }
  std::printf(
      "\n## Reasons of `rocegw_drops_total`\n\n"
      "Every received packet that is not used counts under exactly one reason. The label `side` "
      "names the side at fault: `peer` for what was sent, `local` for this host and its "
      "programs.\n\n");
  for (size_t i = 1; i < metrics::kDropReasonCount; ++i) {
    const auto reason = static_cast<metrics::DropReason>(i);
    if (metrics::DropReasonOnPage(reason) != reason) continue;
    std::printf("- `%s` (%s): %s\n", metrics::DropReasonName(reason),
                metrics::DropReasonSide(reason), metrics::DropReasonHelp(reason));
  }
  std::printf(
      "\nEvery host that reaches the address of `/metrics` can read the page. Some reasons would "
      "tell "
      "a sender how far a guess has come; the page counts each of these under the reason in "
      "brackets. `rocegwctl explain` and `rocegwctl status` separate them.\n\n");
  for (size_t i = 1; i < metrics::kDropReasonCount; ++i) {
    const auto reason = static_cast<metrics::DropReason>(i);
    const metrics::DropReason on_page = metrics::DropReasonOnPage(reason);
    if (on_page == reason) continue;
    std::printf("- `%s` (`%s`): %s\n", metrics::DropReasonName(reason),
                metrics::DropReasonName(on_page), metrics::DropReasonHelp(reason));
  }
}

}  // namespace
}  // namespace rocegw::service

int main() { rocegw::service::Print(); }
