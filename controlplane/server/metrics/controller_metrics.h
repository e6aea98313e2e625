// SPDX-License-Identifier: Apache-2.0
// State of the controller as Prometheus metric families: build, readiness, expiry of certificates,
// activity of the store and the delay of following it, refused claims of nodes. Label values are a
// few fixed words. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "controlplane/api/nodes/pod_review.h"
#include "controlplane/donors/donor_reports.h"
#include "controlplane/donors/donors_service.h"
#include "controlplane/identity/certificate.h"
#include "controlplane/migrations/migration_board.h"
#include "controlplane/server/front/connection_front.h"
#include "controlplane/server/metrics/measured_store.h"
#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/node_hub.h"
#include "controlplane/upgrades/upgrade_board.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/readiness.h"

namespace rocegw::server {

class ControllerMetrics final : public process::MetricsSource {
 public:
  // All arguments outlive this object.
  ControllerMetrics(const MeasuredStore& store, const sync::FleetFollower& follower,
                    const sync::NodeHub& hub, const process::Readiness& readiness)
      : store_(store), follower_(follower), hub_(hub), readiness_(readiness) {}

  std::vector<prometheus::MetricFamily> Collect() const override;
  bool Alive() const override { return true; }

  void SetAuthorityExpiry(identity::TimePoint time) { authority_expires_.store(Seconds(time)); }
  void SetServerExpiry(identity::TimePoint time) { server_expires_.store(Seconds(time)); }
  void SetClockSteps(uint64_t steps) { clock_steps_.store(steps); }
  // nullptr: connections are not counted.
  void SetFront(const ConnectionFront* front) { front_.store(front); }
  // nullptr: no pods join by their tokens.
  void SetPodReview(const api::PodReview* review) { pod_review_.store(review); }
  // Outlives this object; nullptr: no migrations are driven here.
  void SetMigrations(const migrations::MigrationBoard* board) { migrations_.store(board); }
  // Outlives this object; nullptr: no upgrades are driven here.
  void SetUpgrades(const upgrades::UpgradeBoard* board) { upgrades_.store(board); }
  // Both outlive this object; nullptr: donors are not counted.
  void SetDonors(const donors::DonorReports* reports, const donors::SearchCounts* searches) {
    donor_searches_.store(searches);
    donor_reports_.store(reports);
  }
  void SetLeads(bool leads) { leads_.store(leads); }

 private:
  static int64_t Seconds(identity::TimePoint time) {
    return time.time_since_epoch() / std::chrono::seconds(1);
  }

  const MeasuredStore& store_;
  const sync::FleetFollower& follower_;
  const sync::NodeHub& hub_;
  const process::Readiness& readiness_;
  const int64_t start_ns_ = identity::Now().time_since_epoch() / std::chrono::nanoseconds(1);
  std::atomic<int64_t> authority_expires_{0};
  std::atomic<int64_t> server_expires_{0};
  std::atomic<uint64_t> clock_steps_{0};
  std::atomic<const ConnectionFront*> front_{nullptr};
  std::atomic<const api::PodReview*> pod_review_{nullptr};
  std::atomic<const migrations::MigrationBoard*> migrations_{nullptr};
  std::atomic<const upgrades::UpgradeBoard*> upgrades_{nullptr};
  std::atomic<const donors::DonorReports*> donor_reports_{nullptr};
  std::atomic<const donors::SearchCounts*> donor_searches_{nullptr};
  std::atomic<bool> leads_{false};
};

}  // namespace rocegw::server
