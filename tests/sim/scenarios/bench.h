// SPDX-License-Identifier: Apache-2.0
// What scenarios about rates share: a network with sites, flows between them, and samples taken
// while it runs. Settings are those of RateSettings() in scenarios.cc. Owned by a scenario.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/scenarios/scenarios.h"
#include "tests/sim/scenarios/traffic.h"

namespace rocegw::sim {

class Bench {
 public:
  Bench(uint64_t seed, const Settings& settings);

  Network& network() { return network_; }
  // cc as the settings say; RNICs run DCQCN.
  Site& AddSite(SiteKind kind);
  Site& AddSite(SiteKind kind, const std::string& cc);
  LinkConfig edge() const { return edge_; }
  std::vector<Endpoint*> endpoints();
  Site& site(size_t i) { return *sites_[i]; }
  BulkFlow& AddFlow(Site& from, Site& to, uint64_t total_bytes = 0);
  const std::vector<std::unique_ptr<BulkFlow>>& flows() const { return flows_; }

  // Runs, and samples the queue of `link` and the rate of each flow `samples` times.
  void Run(Duration time, Link& link, size_t samples = 400);
  // From here on counts.
  void BeginMeasuring(Link& link);
  // Figures of the time since then: goodput, utilisation, fairness, queue, losses.
  void Measure(Link& link, Report& report);
  // Lines of what Run has sampled.
  void Plot(Report& report, size_t flows = 8) const;
  const std::vector<double>& rates(size_t flow) const { return rates_[flow]; }  // Gbit/s
  const std::vector<double>& sampled_at() const { return at_; }                 // ms
  // The most payload that the link carries, bit/s.
  double PayloadRate() const;
  // Of a full packet and its acknowledgement over one switch, nothing else on the way;
  // microseconds.
  double IdleRoundTrip() const;

 private:
  HostConfig HostOf(const std::string& cc);
  // Of a full packet.
  double CableBytes() const;

  const Settings& settings_;
  Network network_;
  LinkConfig edge_;
  std::vector<uint8_t> memory_;
  std::vector<std::unique_ptr<Site>> sites_;
  std::vector<std::unique_ptr<BulkFlow>> flows_;

  std::vector<double> at_;
  std::vector<double> queue_;
  std::vector<std::vector<double>> rates_;
  std::vector<uint64_t> sampled_bytes_;
  TimePoint sampled_;
  size_t measured_from_ = 0;
  TimePoint begun_;
  std::vector<uint64_t> begun_bytes_;
  LinkCounters begun_link_;
  uint64_t begun_again_ = 0;
  uint64_t begun_timeouts_ = 0;
  uint64_t begun_probes_ = 0;
  uint64_t begun_cnps_ = 0;
};

}  // namespace rocegw::sim
