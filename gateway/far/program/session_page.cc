// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/session_page.h"

#include "gateway/far/program/session_metrics.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::far {

SessionPage::SessionPage(Session& session)
    : session_(session), start_ns_(process::NowNanoseconds()), server_(*this, readiness_) {}

Status SessionPage::Start(const std::string& address) {
  readiness_.SetReady();
  return address.empty() ? OkStatus() : server_.Start(address);
}

std::vector<prometheus::MetricFamily> SessionPage::Collect() const {
  rocegw_memory_statistics statistics{};
  session_.AddStatistics(statistics);
  std::vector<prometheus::MetricFamily> families;
  AddSessionFamilies(families, statistics);
  process::AddProcessFamilies(families, start_ns_);
  return families;
}

}  // namespace rocegw::far
