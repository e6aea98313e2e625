// SPDX-License-Identifier: Apache-2.0
// Stores the division of tenants' limits among donors anew when donors or leases have changed. One
// of the running controllers does it; each write compares what it was computed from, so that two
// controllers never deal out the same bytes. Owns a thread. All arguments outlive it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "controlplane/store/store.h"
#include "controlplane/sync/fleet_follower.h"

namespace rocegw::donors {

class ShareKeeper {
 public:
  // `controller`: id of this controller (sync/presence.h).
  ShareKeeper(store::Store& store, const sync::FleetFollower& follower, std::string controller,
              std::chrono::milliseconds interval = std::chrono::seconds(1));
  ~ShareKeeper();
  ShareKeeper(const ShareKeeper&) = delete;
  ShareKeeper& operator=(const ShareKeeper&) = delete;

 private:
  void Run();
  void Pass();

  store::Store& store_;
  const sync::FleetFollower& follower_;
  const std::string controller_;
  const std::chrono::milliseconds interval_;
  store::Revision seen_ = 0;  // the shares are right for this revision of the fleet
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::donors
