// SPDX-License-Identifier: Apache-2.0
// Metrics page of a session that has no files.
#pragma once

#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/session/session.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/readiness.h"

namespace rocegw::far {

class SessionPage final : public process::MetricsSource {
 public:
  explicit SessionPage(Session& session);
  // Serves until the object is destroyed; nothing at an empty address.
  Status Start(const std::string& address);
  std::vector<prometheus::MetricFamily> Collect() const override;
  bool Alive() const override { return true; }

 private:
  Session& session_;
  const int64_t start_ns_;
  process::Readiness readiness_;
  process::MetricsServer server_;
};

}  // namespace rocegw::far
