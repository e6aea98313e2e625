// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/files_metrics.h"

#include "gateway/far/program/session_metrics.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::far {

using process::AddCounter;
using process::AddGauge;

std::vector<prometheus::MetricFamily> FilesMetrics::Collect() const {
  const FileData::Counts counts = server_.data().GetCounts();
  const FileServer::Names names = server_.GetNames();
  rocegw_memory_statistics session{};
  session_.AddStatistics(session);
  std::vector<prometheus::MetricFamily> families;
  AddGauge(families, "rocegw_memory_files_size_bytes", "Size of the file system",
           counts.blocks * Blocks::kBytes);
  AddGauge(families, "rocegw_memory_files_free_bytes", "Bytes that no file has",
           counts.free_blocks * Blocks::kBytes);
  AddGauge(families, "rocegw_memory_files_names", "Names in all directories", names.used);
  AddGauge(families, "rocegw_memory_files_in_flight_bytes",
           "Bytes of requests that wait for donors", counts.in_flight_bytes);
  AddCounter(families, "rocegw_memory_files_reads_total", "Reads that the kernel asked for",
             counts.reads);
  AddCounter(families, "rocegw_memory_files_read_bytes_total", "Bytes of these reads",
             counts.read_bytes);
  AddCounter(families, "rocegw_memory_files_writes_total", "Writes that the kernel asked for",
             counts.writes);
  AddCounter(families, "rocegw_memory_files_written_bytes_total", "Bytes of these writes",
             counts.written_bytes);
  AddCounter(families, "rocegw_memory_files_failed_total", "Reads and writes that failed with EIO",
             counts.failed);
  AddCounter(families, "rocegw_memory_files_no_room_total", "Requests that failed with ENOSPC",
             counts.no_room);
  AddSessionFamilies(families, session);
  process::AddProcessFamilies(families, start_ns_);
  return families;
}

}  // namespace rocegw::far
