// SPDX-License-Identifier: Apache-2.0
// Gates of plans, judged by a Prometheus server. One thread of this class asks, one query after the
// other: a migration asks its gates a few times a minute at most. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "controlplane/kubeapi/http_call.h"
#include "controlplane/migrations/gates/gate_source.h"
#include "controlplane/migrations/gates/prometheus_answer.h"

namespace rocegw::migrations {

struct PrometheusSettings {
  std::string url;         // "http://prometheus:9090" or "https://host/path"; empty: no gates
  std::string ca_file;     // authorities of https; empty: those of the system
  std::string token_file;  // bearer token, read for each query; empty: none
  std::chrono::milliseconds time_limit{10'000};   // for one query
  std::chrono::milliseconds round_limit{60'000};  // for all gates of a migration together
};

// Reads "http[s]://HOST[:PORT][/PATH]". `problem`: what is wrong, one line.
kubeapi::HttpUrl ReadPrometheusUrl(const std::string& url, std::string& problem);

// Judges a gate by the answers to its query and, where a series is false, to its left side: a false
// series decides nothing if its left side is not a number. If no series of the left side has its
// labels (a comparison with "on" drops some), one that is not a number may be the one.
GateVerdict Judge(const std::string& gate, const PrometheusAnswer& answer,
                  const std::optional<PrometheusAnswer>& left);

class PrometheusGates final : public GateSource {
 public:
  // Rounds of gates that wait. More than the migrations of a fleet.
  static constexpr size_t kMostWaiting = 128;

  explicit PrometheusGates(PrometheusSettings settings);
  // Drops waiting rounds without a verdict.
  ~PrometheusGates() override;
  PrometheusGates(const PrometheusGates&) = delete;
  PrometheusGates& operator=(const PrometheusGates&) = delete;

  bool IsConfigured() const override { return !settings_.url.empty(); }
  void Evaluate(std::vector<std::string> gates, std::function<void(GateVerdict)> done) override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Round {
    std::vector<std::string> gates;
    std::function<void(GateVerdict)> done;
  };

  void Run();
  std::optional<Round> Next();
  // Ends at the first gate that fails, and where the server does not answer.
  GateVerdict VerdictOn(const std::vector<std::string>& gates) const;
  // `unreachable`: the server did not answer, or the round's time is over.
  GateVerdict VerdictOn(const std::string& gate, TimePoint deadline, bool& unreachable) const;
  PrometheusAnswer Ask(const std::string& query, TimePoint deadline) const;

  const PrometheusSettings settings_;
  kubeapi::HttpUrl server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Round> waiting_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rocegw::migrations
