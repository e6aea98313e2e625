// SPDX-License-Identifier: Apache-2.0
// HTTP server for Prometheus and probes: /metrics (text format 0.0.4), /livez (the daemon answers
// and none of its threads is stuck) and /readyz (running with a configuration), 200 or 503.
//
// A single thread serves all connections and waits only for its descriptors. Pages that may block
// are made by threads of their own, /livez apart from /metrics. Connections are bounded in number,
// per source address, in size and in time. The newest connection is always served: above the limit,
// the oldest one without a complete request is closed first, and scrapes before probes.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/process/http/http_connection.h"
#include "gateway/process/http/page_maker.h"
#include "gateway/process/readiness.h"
#include "gateway/process/watchdog.h"

namespace rocegw::process {

// Metrics of a daemon. Any thread; may wait for the daemon, at most a second.
class MetricsSource : public prometheus::Collectable {
 public:
  // Returns nothing if the daemon did not answer in time.
  std::vector<prometheus::MetricFamily> Collect() const override = 0;
  // Returns true if the daemon answers.
  virtual bool Alive() const = 0;
};

class MetricsServer {
 public:
  // All arguments outlive the server. `watchdog`: nullptr if no thread is watched.
  MetricsServer(const MetricsSource& metrics, const Readiness& readiness,
                const Watchdog* watchdog = nullptr);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Starts the server. `address`: "127.0.0.1:7474" or "[::1]:7474"; port 0 takes a free port.
  // `inherited`: may have the socket of another process for this address; nullptr: none.
  Status Start(const std::string& address, InheritedFds* inherited = nullptr);
  void Stop();
  // Accepts no connections, which wait in the socket, or accepts them again. Also before Start.
  void SetAccepting(bool accepting);
  // Adds the listening socket of the running server to what another process may inherit.
  void Offer(OfferedFds& fds) const;
  // Returns the port of the running server, otherwise 0.
  int port() const { return port_; }

 private:
  using Connections = std::vector<std::unique_ptr<HttpConnection>>;

  UniqueFd Listen() const;
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
  std::string address_;
  int port_ = 0;
  UniqueFd listener_;
  UniqueFd wake_;
  std::unique_ptr<PageMaker> metrics_page_;
  std::unique_ptr<PageMaker> live_page_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> accepting_{true};
  Connections connections_;  // oldest first
  TimePoint accept_again_;   // set after descriptors ran out
  std::thread thread_;
};

}  // namespace rocegw::process
