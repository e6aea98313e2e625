// SPDX-License-Identifier: Apache-2.0
// HTTP for Prometheus and for probes: /metrics (text format 0.0.4), /livez (the daemon
// answers) and /readyz (running with a configuration), 200 or 503. prometheus-cpp's own exposer
// serves nothing but metrics, so its serializer is used with the same web server. Main thread; the
// web server runs its own threads.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/process/readiness.h"

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
  // Both live longer than the server.
  MetricsServer(const MetricsSource& metrics, const Readiness& readiness);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // address: "127.0.0.1:7474"; port 0 takes a free one.
  Status Start(const std::string& address);
  void Stop();
  // Of the running server, 0 otherwise.
  int port() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rocegw::process
