// SPDX-License-Identifier: Apache-2.0
// Queries to Prometheus's HTTP API (/api/v1/query) and their answers, which are foreign input.
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocegw::migrations {

struct Sample {
  std::string labels;  // {job="gateway", node="n1"}, without the name; empty: a scalar
  double value = 0;
};

struct PrometheusAnswer {
  std::string problem;  // why there are no samples; empty: there may be some
  std::vector<Sample> samples;
  bool unreachable = false;  // the server did not answer; it is not the query's fault
};

// Path and query of a request. `base`: path of Prometheus, without a slash at its end.
std::string QueryPath(const std::string& base, std::string_view query);
PrometheusAnswer ReadPrometheusAnswer(int status, std::string_view body);

}  // namespace rocegw::migrations
