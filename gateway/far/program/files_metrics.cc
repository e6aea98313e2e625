// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/files_metrics.h"

#include "gateway/far/program/session_metrics.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::far {

using process::AddSingle;
using prometheus::MetricType;

std::vector<prometheus::MetricFamily> FilesMetrics::Collect() const {
  const FileData::Counts counts = server_.data().GetCounts();
  const FileServer::Names names = server_.GetNames();
  rocegw_memory_statistics session{};
  session_.AddStatistics(session);
  std::vector<prometheus::MetricFamily> families;
  const auto gauge = [&families](const char* name, const char* help, uint64_t value) {
    AddSingle(families, name, help, MetricType::Gauge, static_cast<double>(value));
  };
  const auto counter = [&families](const char* name, const char* help, uint64_t value) {
    AddSingle(families, name, help, MetricType::Counter, static_cast<double>(value));
  };
  gauge("rocegw_memory_files_size_bytes", "Size of the file system",
        counts.blocks * Blocks::kBytes);
  gauge("rocegw_memory_files_free_bytes", "Bytes that no file has",
        counts.free_blocks * Blocks::kBytes);
  gauge("rocegw_memory_files_names", "Names in all directories", names.used);
  gauge("rocegw_memory_files_in_flight_bytes", "Bytes of requests that wait for donors",
        counts.in_flight_bytes);
  counter("rocegw_memory_files_reads_total", "Reads that the kernel asked for", counts.reads);
  counter("rocegw_memory_files_read_bytes_total", "Bytes of these reads", counts.read_bytes);
  counter("rocegw_memory_files_writes_total", "Writes that the kernel asked for", counts.writes);
  counter("rocegw_memory_files_written_bytes_total", "Bytes of these writes", counts.written_bytes);
  counter("rocegw_memory_files_failed_total", "Reads and writes that failed with EIO",
          counts.failed);
  counter("rocegw_memory_files_no_room_total", "Requests that failed with ENOSPC", counts.no_room);
  AddSessionFamilies(families, session);
  process::AddProcessFamilies(families, start_ns_);
  return families;
}

}  // namespace rocegw::far
