// SPDX-License-Identifier: Apache-2.0
// Helpers for a metrics page: families with their values, and the conventional process_* families,
// which prometheus-cpp lacks. Any thread.
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rocegw::process {

// Adds a family. The reference is valid until the next family is added.
prometheus::MetricFamily& AddFamily(std::vector<prometheus::MetricFamily>& families,
                                    std::string name, std::string help,
                                    prometheus::MetricType type);
void AddValue(prometheus::MetricFamily& family, std::vector<prometheus::ClientMetric::Label> labels,
              double value);
// Adds a family with one value and no labels.
void AddSingle(std::vector<prometheus::MetricFamily>& families, const char* name, const char* help,
               prometheus::MetricType type, double value);

// Adds a gauge or a counter with one value and no labels.
void AddGauge(std::vector<prometheus::MetricFamily>& families, const char* name, const char* help,
              uint64_t value);
void AddCounter(std::vector<prometheus::MetricFamily>& families, const char* name, const char* help,
                uint64_t value);

// Returns the time since 1970.
int64_t NowNanoseconds();
// `start_ns`: start of the process, since 1970.
void AddProcessFamilies(std::vector<prometheus::MetricFamily>& families, int64_t start_ns);

}  // namespace rocegw::process
