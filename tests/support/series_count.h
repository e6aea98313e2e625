// SPDX-License-Identifier: Apache-2.0
// Number of series that a page of metrics makes in Prometheus. Any thread.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace rocegw::testing {

inline size_t SeriesOf(const std::vector<prometheus::MetricFamily>& families) {
  size_t series = 0;
  for (const prometheus::MetricFamily& family : families) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      const bool histogram = family.type == prometheus::MetricType::Histogram;
      // Buckets, sum and count of a histogram.
      series += histogram ? metric.histogram.bucket.size() + 2 : 1;
    }
  }
  return series;
}

}  // namespace rocegw::testing
