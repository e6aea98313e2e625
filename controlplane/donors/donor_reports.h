// SPDX-License-Identifier: Apache-2.0
// Reports of agents about the donors of their hosts: writes the donors' states to the store when
// they have changed notably, and says what the donors should do. A donor whose reports stop becomes
// SILENT. Owns a thread; any thread may call. All arguments outlive it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/status_writer.h"
#include "rocegw/fleet/v1/donors.pb.h"

namespace rocegw::donors {

// Why a report about a donor is not taken.
enum class ReportRefusal { kForeignAddress, kTooMany, kTooOften };
inline constexpr size_t kReportRefusals = 3;

class DonorReports {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kSilentAfter{25};

  // `controller`: id of this controller (sync/presence.h). `silent_after`: for tests.
  DonorReports(sync::FleetFollower& follower, sync::StatusWriter& statuses, std::string controller,
               std::chrono::milliseconds silent_after = kSilentAfter);
  ~DonorReports();
  DonorReports(const DonorReports&) = delete;
  DonorReports& operator=(const DonorReports&) = delete;

  // Takes the report of a gateway's agent, which follows the rules of its fields, and fills in the
  // answer. Returns the names of donors that are new: their objects must be created.
  std::vector<std::string> Take(const fleet::v1::ReportDonorsRequest& report,
                                fleet::v1::ReportDonorsResponse& answer);

  // Counts the donors of a report that comes too early.
  void RefuseAll(const fleet::v1::ReportDonorsRequest& report);

  uint64_t reports() const { return reports_.load(); }
  uint64_t refused(ReportRefusal why) const { return refused_[static_cast<size_t>(why)].load(); }

 private:
  void Refuse(ReportRefusal why, fleet::v1::DonorOrder& order, std::string text);
  void Write(const std::string& name, const types::v1::DonorState& state);
  void Run();
  // Finds donors whose reports have stopped.
  void FindSilent(const sync::Fleet& fleet, Clock::time_point now);

  sync::FleetFollower& follower_;
  sync::StatusWriter& statuses_;
  const std::string controller_;
  const std::chrono::milliseconds silent_after_;
  std::atomic<uint64_t> reports_{0};
  std::array<std::atomic<uint64_t>, kReportRefusals> refused_{};
  std::mutex mutex_;  // after the follower's
  std::condition_variable wake_;
  bool stopping_ = false;
  // Last report of donors that serve, or when this controller first saw that no running controller
  // has reports of them.
  std::map<std::string, Clock::time_point> heard_;
  std::thread thread_;
};

// Returns true if the new state is to be written over the old one: amounts of leases change all the
// time, and are written when they have changed by a 64th of the donated memory, or to or from 0.
bool IsNotable(const types::v1::DonorState& before, const types::v1::DonorState& after);

}  // namespace rocegw::donors
