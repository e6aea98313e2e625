// SPDX-License-Identifier: Apache-2.0
#include "agent/supervise/agent_metrics.h"

#include "gateway/process/build_info.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::agent {

using process::AddFamily;
using process::AddSingle;
using process::AddValue;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<MetricFamily> AgentMetrics::Collect() const {
  std::vector<MetricFamily> families;
  const auto gauge = [&](const char* name, const char* help, double value) {
    AddSingle(families, name, help, MetricType::Gauge, value);
  };
  const auto counter = [&](const char* name, const char* help, const std::atomic<uint64_t>& value) {
    AddSingle(families, name, help, MetricType::Counter, static_cast<double>(value.load()));
  };
  AddValue(AddFamily(families, "rocegw_build_info", "version of the running agent; always 1",
                     MetricType::Gauge),
           {{"compiler", process::Compiler()},
            {"revision", process::Revision()},
            {"version", process::Version()}},
           1);
  gauge("rocegw_agent_controller_connected", "1: the controller has taken this agent's stream",
        counters_.controller_connected ? 1 : 0);
  gauge("rocegw_agent_gateway_connected", "1: the gateway answers",
        counters_.gateway_connected ? 1 : 0);
  gauge("rocegw_agent_in_sync", "1: the gateway runs what the controller sent last",
        counters_.in_sync ? 1 : 0);
  gauge("rocegw_agent_unadopted", "1: the gateway keeps another store's configuration",
        counters_.unadopted ? 1 : 0);
  gauge("rocegw_agent_desired_revision", "revision of the newest configuration received",
        static_cast<double>(counters_.desired_revision));
  gauge("rocegw_agent_applied_revision", "revision of the configuration that the gateway runs",
        static_cast<double>(counters_.applied_revision));
  gauge("rocegw_agent_rejected_objects", "objects that the gateway could not apply",
        static_cast<double>(counters_.rejections));
  gauge("rocegw_certificate_expiry_timestamp_seconds",
        "when the certificate of this node ends, since 1970",
        static_cast<double>(counters_.certificate_expires));
  gauge("rocegw_agent_fleet_keys_taken_timestamp_seconds",
        "when a controller last gave the keys of the fleet, since 1970; 0: never",
        static_cast<double>(counters_.fleet_keys_taken));
  counter("rocegw_agent_pushes_total", "pushes received, parts counted singly", counters_.pushes);
  counter("rocegw_agent_applies_total", "configurations handed to the gateway", counters_.applies);
  counter("rocegw_agent_failed_applies_total", "of these, not answered by the gateway",
          counters_.failed_applies);
  counter("rocegw_agent_stream_ends_total", "streams to controllers that ended",
          counters_.reconnects);
  counter("rocegw_agent_renewals_total", "certificates renewed", counters_.renewals);
  counter("rocegw_agent_questions_total", "questions of controllers", counters_.questions);
  const DonorCounters& donors = counters_.donors;
  gauge("rocegw_agent_donors", "donors of memory that announce themselves on this host",
        static_cast<double>(donors.donors));
  counter("rocegw_agent_refused_donor_files_total",
          "announcements of donors that were refused, counted each second", donors.refused_files);
  counter("rocegw_agent_donor_reports_total", "reports of donors to controllers", donors.reports);
  counter("rocegw_agent_failed_donor_reports_total", "of these, not taken", donors.failed_reports);
  counter("rocegw_agent_donor_questions_total", "programs that asked for donors of the fleet",
          donors.questions);
  counter("rocegw_agent_refused_donor_questions_total", "of these, without donors",
          donors.refused_questions);
  MetricFamily& verdicts = AddFamily(families, "rocegw_agent_attach_verdicts_total",
                                     "answers to processes that wanted to attach to pools that ask",
                                     MetricType::Counter);
  AddValue(verdicts, {{"verdict", "allowed"}}, static_cast<double>(verdicts_.allowed));
  AddValue(verdicts, {{"verdict", "denied"}}, static_cast<double>(verdicts_.denied));
  gauge("rocegw_agent_kubelet_resources", "pools that kubelet offers as resources",
        static_cast<double>(kubelet_.registered));
  MetricFamily& slots =
      AddFamily(families, "rocegw_agent_slots", "slots that kubelet is told of, by their health",
                MetricType::Gauge);
  AddValue(slots, {{"health", "healthy"}}, static_cast<double>(kubelet_.healthy_slots));
  AddValue(slots, {{"health", "unhealthy"}}, static_cast<double>(kubelet_.unhealthy_slots));
  counter("rocegw_agent_kubelet_registrations_total",
          "resources that kubelet was told of, again after each of its starts",
          kubelet_.registrations);
  counter("rocegw_agent_slot_allocations_total", "slots given to containers", kubelet_.allocations);
  const ClaimCounters none;
  const ClaimCounters& claims = claims_ == nullptr ? none : *claims_;
  gauge("rocegw_agent_claims", "claims of pods that are prepared on this node",
        static_cast<double>(claims.prepared));
  MetricFamily& preparations =
      AddFamily(families, "rocegw_agent_claim_preparations_total",
                "claims that kubelet wanted prepared", MetricType::Counter);
  AddValue(preparations, {{"outcome", "prepared"}}, static_cast<double>(claims.prepares));
  AddValue(preparations, {{"outcome", "refused"}}, static_cast<double>(claims.refusals));
  MetricFamily& ends = AddFamily(families, "rocegw_agent_claim_ends_total",
                                 "claims that ended, by kubelet or found stale at the API server",
                                 MetricType::Counter);
  AddValue(ends, {{"by", "kubelet"}}, static_cast<double>(claims.unprepares));
  AddValue(ends, {{"by", "review"}}, static_cast<double>(claims.stale));
  gauge("rocegw_agent_claim_devices", "devices for claims that the API server has of this node",
        static_cast<double>(claims.devices));
  gauge("rocegw_agent_claim_devices_published",
        "1: the API server has the devices of this node as they are", claims.published ? 1 : 0);
  process::AddProcessFamilies(families, start_ns_);
  return families;
}

}  // namespace rocegw::agent
