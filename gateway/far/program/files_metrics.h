// SPDX-License-Identifier: Apache-2.0
// Metrics of a mounted file system. Any thread; server and session outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/far/program/file_server.h"
#include "gateway/far/session/session.h"
#include "gateway/process/http/metrics_server.h"

namespace rocegw::far {

class FilesMetrics final : public process::MetricsSource {
 public:
  // `start_ns`: start of the process, since 1970.
  FilesMetrics(FileServer& server, Session& session, int64_t start_ns)
      : server_(server), session_(session), start_ns_(start_ns) {}
  std::vector<prometheus::MetricFamily> Collect() const override;
  bool Alive() const override { return true; }

 private:
  FileServer& server_;
  Session& session_;
  const int64_t start_ns_;
};

}  // namespace rocegw::far
