// SPDX-License-Identifier: Apache-2.0
// Common part of the rate scenarios: a network with sites, flows between them, and samples during
// the run. The settings are those of RateSettings() in scenarios.cc. Owned by a scenario.
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
  // Adds a site with the congestion control of the settings; RNICs run DCQCN.
  Site& AddSite(SiteKind kind);
  Site& AddSite(SiteKind kind, const std::string& cc);
  LinkConfig edge() const { return edge_; }
  std::vector<Endpoint*> endpoints();
  Site& site(size_t i) { return *sites_[i]; }
  BulkFlow& AddFlow(Site& from, Site& to, uint64_t total_bytes = 0);
  const std::vector<std::unique_ptr<BulkFlow>>& flows() const { return flows_; }

  // Runs, and samples the queue of `link` and the rate of each flow `samples` times.
  void Run(Duration time, Link& link, size_t samples = 400);
  // Starts counting.
  void BeginMeasuring(Link& link);
  // Adds the figures since BeginMeasuring: goodput, utilisation, fairness, queue, losses.
  void Measure(Link& link, Report& report);
  // Adds the samples of Run as series.
  void Plot(Report& report, size_t flows = 8) const;
  const std::vector<double>& rates(size_t flow) const { return rates_[flow]; }  // Gbit/s
  const std::vector<double>& sampled_at() const { return at_; }                 // ms
  // Returns the largest payload rate of the link, bit/s.
  double PayloadRate() const;
  // Returns the round trip of a full packet and its acknowledgement over one idle switch, in
  // microseconds.
  double IdleRoundTrip() const;

 private:
  HostConfig HostOf(const std::string& cc);
  // Returns the bytes of a full packet on the cable.
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
