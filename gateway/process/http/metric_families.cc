// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/http/metric_families.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "gateway/process/log/logging.h"

namespace rocegw::process {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily& AddFamily(std::vector<MetricFamily>& families, std::string name, std::string help,
                        MetricType type) {
  MetricFamily& family = families.emplace_back();
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

void AddValue(MetricFamily& family, std::vector<ClientMetric::Label> labels, double value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
}

void AddSingle(std::vector<MetricFamily>& families, const char* name, const char* help,
               MetricType type, double value) {
  AddValue(AddFamily(families, name, help, type), {}, value);
}

void AddGauge(std::vector<MetricFamily>& families, const char* name, const char* help,
              uint64_t value) {
  AddSingle(families, name, help, MetricType::Gauge, static_cast<double>(value));
}

void AddCounter(std::vector<MetricFamily>& families, const char* name, const char* help,
                uint64_t value) {
  AddSingle(families, name, help, MetricType::Counter, static_cast<double>(value));
}

int64_t NowNanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void AddProcessFamilies(std::vector<MetricFamily>& families, int64_t start_ns) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  AddSingle(families, "process_cpu_seconds_total", "user and system time used", MetricType::Counter,
            seconds(usage.ru_utime) + seconds(usage.ru_stime));
  AddSingle(families, "process_start_time_seconds", "start of the process since 1970",
            MetricType::Gauge, static_cast<double>(start_ns) / 1e9);
  unsigned long size = 0;
  unsigned long resident = 0;
  if (FILE* statm = std::fopen("/proc/self/statm", "re"); statm != nullptr) {
    if (std::fscanf(statm, "%lu %lu", &size, &resident) == 2) {
      const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
      AddSingle(families, "process_virtual_memory_bytes", "virtual memory size", MetricType::Gauge,
                static_cast<double>(size) * page);
      AddSingle(families, "process_resident_memory_bytes", "resident memory size",
                MetricType::Gauge, static_cast<double>(resident) * page);
    }
    std::fclose(statm);
  }
  if (DIR* fds = opendir("/proc/self/fd"); fds != nullptr) {
    int open = -1;  // the directory's own descriptor
    while (const dirent* entry = readdir(fds)) open += entry->d_name[0] != '.' ? 1 : 0;
    closedir(fds);
    AddSingle(families, "process_open_fds", "open file descriptors", MetricType::Gauge, open);
  }
  AddSingle(families, "rocegw_log_lines_dropped_total",
            "lines of the log that were dropped because their reader was too slow",
            MetricType::Counter, static_cast<double>(DroppedLogLines()));
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  AddSingle(families, "process_max_fds", "limit of open file descriptors", MetricType::Gauge,
            static_cast<double>(limit.rlim_cur));
}

}  // namespace rocegw::process
