// SPDX-License-Identifier: Apache-2.0
// HTTP for Prometheus and for probes: /metrics (text format 0.0.4), /livez (the control thread
// answers) and /readyz (running with a configuration), 200 or 503. prometheus-cpp's own exposer
// serves nothing but metrics, so its serializer is used with the same web server. Main thread; the
// web server runs its own threads.
#pragma once

#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/service/gateway_metrics.h"

namespace rocegw::service {

class MetricsServer {
 public:
  // Both live longer than the server.
  MetricsServer(const GatewayMetrics& metrics, const Readiness& readiness);
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

}  // namespace rocegw::service
