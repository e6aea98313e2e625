// SPDX-License-Identifier: Apache-2.0
// State of the daemon as Prometheus metric families, made at each scrape from counters.def,
// drop_reasons.def, gauges.def and peers.def. Labels are worker, reason, side, port, tenant, pool,
// limit and peer, never a QPN or an address. Any thread; Collect waits for the state source, at
// most a second.
#pragma once

#include <prometheus/metric_family.h>

#include <optional>
#include <vector>

#include "gateway/process/http/metrics_server.h"
#include "gateway/service/identity.h"
#include "gateway/service/sources/state_source.h"

namespace rocegw::service {

class GatewayMetrics final : public process::MetricsSource {
 public:
  // All arguments outlive this object.
  GatewayMetrics(const GatewayIdentity& identity, const Readiness& readiness, StateSource& source)
      : identity_(identity), readiness_(readiness), source_(source) {}

  // Returns nothing if the daemon did not answer in time.
  std::vector<prometheus::MetricFamily> Collect() const override;
  // Returns true if the daemon's control thread answers.
  bool Alive() const override { return Ask({}).has_value(); }

 private:
  std::optional<session::StateSnapshot> Ask(const session::StateQuery& query) const;

  const GatewayIdentity& identity_;
  const Readiness& readiness_;
  StateSource& source_;
};

}  // namespace rocegw::service
