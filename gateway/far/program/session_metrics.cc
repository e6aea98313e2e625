// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/session_metrics.h"

#include "gateway/process/http/metric_families.h"

namespace rocegw::far {

using process::AddCounter;
using process::AddGauge;
using process::AddSingle;
using prometheus::MetricType;

void AddSessionFamilies(std::vector<prometheus::MetricFamily>& families,
                        const rocegw_memory_statistics& session) {
  AddGauge(families, "rocegw_memory_session_donors", "Connected donors", session.donors_connected);
  AddCounter(families, "rocegw_memory_session_donors_lost_total", "Donors that were lost",
             session.donors_lost);
  AddCounter(families, "rocegw_memory_session_donor_timeouts_total",
             "Donors that were lost because they completed nothing in time",
             session.donor_timeouts);
  AddCounter(families, "rocegw_memory_session_donor_faults_total",
             "Donors that were lost because they said what no question had asked for",
             session.donor_faults);
  AddCounter(families, "rocegw_memory_session_device_losses_total",
             "Times that the device, the gateway of this host, ended in use",
             session.device_losses);
  AddSingle(families, "rocegw_memory_session_device_stall_seconds_total",
            "Time that requests waited for the device and for donors to continue the session",
            MetricType::Counter, static_cast<double>(session.device_stall_ns) / 1e9);
  AddGauge(families, "rocegw_memory_session_suspended_donors",
           "Donors where the session is to continue by another device", session.donors_suspended);
  AddCounter(families, "rocegw_memory_session_retried_reads_total",
             "Reads repeated at another replica", session.retried_reads);
  AddCounter(families, "rocegw_memory_session_restored_bytes_total", "Bytes copied to new replicas",
             session.restored_bytes);
  AddCounter(families, "rocegw_memory_session_agreed_bytes_total",
             "Bytes copied between replicas of a process that was killed, so that they are equal",
             session.agreed_bytes);
  AddCounter(families, "rocegw_memory_session_placement_saves_total",
             "Times that the placement of kept files was saved", session.placement_saves);
  AddCounter(families, "rocegw_memory_session_placement_errors_total",
             "Times that the placement of kept files could not be saved", session.placement_errors);
  AddGauge(families, "rocegw_memory_session_degraded_slabs",
           "Slabs with fewer replicas than asked for", session.slabs_degraded);
  AddGauge(families, "rocegw_memory_session_unserved_slabs", "Slabs without any replica",
           session.slabs_unserved);
  AddGauge(families, "rocegw_memory_session_lost_pages", "Pages whose data is lost",
           session.lost_pages);
  AddGauge(families, "rocegw_memory_session_draining_donors",
           "Connected donors that ask for their memory", session.donors_draining);
  AddCounter(families, "rocegw_memory_session_returned_leases_total",
             "Leases of replicas that moved away from draining donors", session.leases_returned);
  AddGauge(families, "rocegw_memory_session_shared_domain_slabs",
           "Slabs with two replicas in one failure domain", session.slabs_shared_domain);
  AddCounter(families, "rocegw_memory_session_operations_total", "RDMA operations",
             session.read_operations + session.write_operations);
  AddCounter(families, "rocegw_memory_session_merged_requests_total",
             "Requests that left within the RDMA operation of another one",
             session.merged_requests);
  // A session without a disk copy has no such metric: alerts would fire for it.
  if (session.disk_copies != 0) {
    AddGauge(families, "rocegw_memory_session_disk_up",
             "1 while the disk copy accepts writes; only with a disk copy", session.disk_up);
    AddGauge(
        families, "rocegw_memory_session_disk_flush_fails",
        "1 while fsync fails, because the disk copy is down or lacks data; only with a disk copy",
        session.disk_flush_fails);
  }
  AddGauge(families, "rocegw_memory_session_disk_queued_bytes",
           "Bytes of writes that wait for the disk copy", session.disk_queued_bytes);
  AddGauge(families, "rocegw_memory_session_disk_missing_pages",
           "Pages that replicas have and the disk copy lacks", session.disk_missing_pages);
  AddCounter(families, "rocegw_memory_session_disk_written_bytes_total",
             "Bytes written to the disk copy", session.disk_written_bytes);
  AddCounter(families, "rocegw_memory_session_disk_read_bytes_total",
             "Bytes read from the disk copy", session.disk_read_bytes);
  AddCounter(families, "rocegw_memory_session_disk_errors_total",
             "Operations of the disk copy that failed", session.disk_errors);
  AddCounter(families, "rocegw_memory_session_disk_timeouts_total",
             "Operations of the disk copy that took too long", session.disk_timeouts);
  AddCounter(families, "rocegw_memory_session_disk_waits_total",
             "Times that writes waited because the queue of the disk copy was full",
             session.disk_waits);
  AddSingle(families, "rocegw_memory_session_disk_wait_seconds_total",
            "Time that writes waited because the queue of the disk copy was full",
            MetricType::Counter, static_cast<double>(session.disk_wait_ns) / 1e9);
}

}  // namespace rocegw::far
