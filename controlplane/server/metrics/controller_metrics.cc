// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/metrics/controller_metrics.h"

#include <iterator>
#include <utility>

#include "controlplane/donors/donor_metrics.h"
#include "controlplane/identity/fleet_key_rotation.h"
#include "controlplane/server/metrics/migration_metrics.h"
#include "controlplane/server/metrics/upgrade_metrics.h"
#include "gateway/process/build_info.h"
#include "gateway/process/http/metric_families.h"

namespace rocegw::server {

using process::AddFamily;
using process::AddSingle;
using process::AddValue;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<MetricFamily> ControllerMetrics::Collect() const {
  std::vector<MetricFamily> families;
  AddValue(AddFamily(families, "rocegw_build_info", "version of the running controller; always 1",
                     MetricType::Gauge),
           {{"compiler", process::Compiler()},
            {"revision", process::Revision()},
            {"version", process::Version()}},
           1);
  AddSingle(families, "rocegw_ready", "1: running and following its store", MetricType::Gauge,
            readiness_.reason().empty() ? 1 : 0);
  MetricFamily& expiry =
      AddFamily(families, "rocegw_certificate_expiry_timestamp_seconds",
                "when a certificate of the controller ends, since 1970", MetricType::Gauge);
  AddValue(expiry, {{"certificate", "authority"}}, static_cast<double>(authority_expires_.load()));
  AddValue(expiry, {{"certificate", "server"}}, static_cast<double>(server_expires_.load()));
  AddSingle(families, "rocegw_housekeeper_leads", "1: this controller keeps the store from growing",
            MetricType::Gauge, leads_.load() ? 1 : 0);
  struct Sizes {
    store::Revision revision;
    size_t tenants, pools, policies, gateways, bindings, donors;
    std::vector<identity::TimePoint> key_starts;
  };
  const Sizes sizes = follower_.Read([](const sync::Fleet& fleet) -> Sizes {
    const auto& view = fleet.view;
    return {view.revision,        view.tenants.size(),
            view.pools.size(),    view.cc_policies.size(),
            view.gateways.size(), view.role_bindings.size(),
            view.donors.size(),   identity::StartsOfKeys(fleet.fleet_keys)};
  });
  AddSingle(families, "rocegw_followed_revision", "newest revision of the store that is known",
            MetricType::Gauge, static_cast<double>(sizes.revision));
  AddSingle(
      families, "rocegw_fleet_key_rotation_timestamp_seconds",
      "when the keys of the fleet were last rotated out of turn, or will be, since 1970; 0: never",
      MetricType::Gauge,
      sizes.key_starts.empty() ? 0 : static_cast<double>(Seconds(sizes.key_starts.back())));
  MetricFamily& objects =
      AddFamily(families, "rocegw_objects", "objects of the fleet", MetricType::Gauge);
  AddValue(objects, {{"kind", "tenants"}}, static_cast<double>(sizes.tenants));
  AddValue(objects, {{"kind", "pools"}}, static_cast<double>(sizes.pools));
  AddValue(objects, {{"kind", "ccPolicies"}}, static_cast<double>(sizes.policies));
  AddValue(objects, {{"kind", "gateways"}}, static_cast<double>(sizes.gateways));
  AddValue(objects, {{"kind", "roleBindings"}}, static_cast<double>(sizes.bindings));
  AddValue(objects, {{"kind", "donors"}}, static_cast<double>(sizes.donors));
  MetricFamily& refused =
      AddFamily(families, "rocegw_refused_addresses_total",
                "addresses that gateways named and that are not believed", MetricType::Counter);
  using controllers::AddressRefusal;
  for (const auto& [reason, why] : {std::pair{"malformed", AddressRefusal::kMalformed},
                                    {"taken", AddressRefusal::kTaken},
                                    {"too_many", AddressRefusal::kTooMany}}) {
    AddValue(refused, {{"reason", reason}}, static_cast<double>(hub_.refused_addresses(why)));
  }
  AddSingle(families, "rocegw_clock_steps_total",
            "times that the clock of this host was set by half a minute or more",
            MetricType::Counter, static_cast<double>(clock_steps_.load()));
  const ConnectionFront* const front = front_.load();
  AddSingle(families, "rocegw_stranger_connections",
            "connections on which no certificate has been shown yet", MetricType::Gauge,
            front == nullptr ? 0 : static_cast<double>(front->strangers()));
  MetricFamily& closed = AddFamily(
      families, "rocegw_closed_connections_total",
      "connections that were closed at a limit of strangers or of one caller", MetricType::Counter);
  for (size_t reason = 0; reason < kFrontCloseNames.size(); ++reason) {
    AddValue(
        closed, {{"limit", kFrontCloseNames[reason]}},
        front == nullptr ? 0 : static_cast<double>(front->closed(static_cast<FrontClose>(reason))));
  }
  const api::PodReview* const review = pod_review_.load();
  const api::PodReviewCounts joins = review == nullptr ? api::PodReviewCounts() : review->counts();
  MetricFamily& pods =
      AddFamily(families, "rocegw_pod_joins_total",
                "nodes that wanted to join by the token of their agent's pod", MetricType::Counter);
  for (const auto& [outcome, count] : {std::pair{"confirmed", joins.confirmed},
                                       {"refused", joins.refused},
                                       {"limited", joins.limited},
                                       {"failed", joins.failed}}) {
    AddValue(pods, {{"outcome", outcome}}, static_cast<double>(count));
  }
  const migrations::MigrationBoard* const board = migrations_.load();
  if (board != nullptr) AddMigrationFamilies(board->Read(), families);
  const upgrades::UpgradeBoard* const upgrade = upgrades_.load();
  if (upgrade != nullptr) AddUpgradeFamilies(upgrade->Read(), families);
  const donors::DonorReports* const reports = donor_reports_.load();
  if (reports != nullptr) {
    const donors::DonorSums sums =
        follower_.Read([](const sync::Fleet& fleet) { return donors::SumsOf(fleet.view); });
    AddDonorFamilies(sums, *reports, *donor_searches_.load(), families);
  }
  auto of_store = store_.Collect();
  std::move(of_store.begin(), of_store.end(), std::back_inserter(families));
  process::AddProcessFamilies(families, start_ns_);
  return families;
}

}  // namespace rocegw::server
