// SPDX-License-Identifier: Apache-2.0
// Metrics of a donor of a shared block pool. Any thread; the donor outlives it.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/far/shared_pool/block_donor.h"
#include "gateway/process/http/metrics_server.h"

namespace rocegw::far {

class BlockDonorMetrics final : public process::MetricsSource {
 public:
  // `start_ns`: start of the process, since 1970.
  BlockDonorMetrics(const BlockDonor& donor, int64_t start_ns)
      : donor_(donor), start_ns_(start_ns) {}
  std::vector<prometheus::MetricFamily> Collect() const override;
  bool Alive() const override { return donor_.IsRunning(); }

 private:
  const BlockDonor& donor_;
  const int64_t start_ns_;
};

}  // namespace rocegw::far
