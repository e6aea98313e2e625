// SPDX-License-Identifier: Apache-2.0
// HTTP for Prometheus and for probes: /metrics (text format 0.0.4), /livez (the daemon answers and
// none of its threads is stuck) and /readyz (running with a configuration), 200 or 503.
//
// One thread serves all connections and never waits for anything but its descriptors; pages that
// may wait are made by threads of their own, /livez apart from /metrics. Connections are bounded in
// number, per source address, in size and in time. The newest is always served: where there are too
// many, the oldest that has not completed its request is closed first, and scrapes before probes.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/process/http/http_connection.h"
#include "gateway/process/http/page_maker.h"
#include "gateway/process/readiness.h"
#include "gateway/process/watchdog.h"

namespace rocegw::process {

// What a daemon tells about itself. Any thread; may wait for the daemon, at most a second.
class MetricsSource : public prometheus::Collectable {
 public:
  // Empty when the daemon did not answer in time.
  std::vector<prometheus::MetricFamily> Collect() const override = 0;
  // Whether it answers.
  virtual bool Alive() const = 0;
};

class MetricsServer {
 public:
  // All live longer than the server. watchdog: nullptr when no thread is watched.
  MetricsServer(const MetricsSource& metrics, const Readiness& readiness,
                const Watchdog* watchdog = nullptr);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // address: "127.0.0.1:7474" or "[::1]:7474"; port 0 takes a free one.
  Status Start(const std::string& address);
  void Stop();
  // Of the running server, 0 otherwise.
  int port() const { return port_; }

 private:
  using Connections = std::vector<std::unique_ptr<HttpConnection>>;

  void Run();
  void Wake() const;
  int WaitMilliseconds(TimePoint now) const;
  void Accept(TimePoint now);
  void MakeRoom(const HttpConnection::Source& source);
  void Answer(HttpConnection& connection, TimePoint now);
  void AnswerReadyPages(TimePoint now);
  void OnDeadline(HttpConnection& connection, TimePoint now);

  const MetricsSource& metrics_;
  const Readiness& readiness_;
  const Watchdog* const watchdog_;
  int port_ = 0;
  UniqueFd listener_;
  UniqueFd wake_;
  std::unique_ptr<PageMaker> metrics_page_;
  std::unique_ptr<PageMaker> live_page_;
  std::atomic<bool> stop_{false};
  Connections connections_;  // oldest first
  TimePoint accept_again_;   // after descriptors ran out
  std::thread thread_;
};

}  // namespace rocegw::process
