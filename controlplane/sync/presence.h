// SPDX-License-Identifier: Apache-2.0
// Says in the store that this controller is there, under a lease: the key goes with the process, or
// when the store has not heard of it for the lease's time. Owns a thread; goes before its store.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "controlplane/store/election.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::sync {

class Presence {
 public:
  static constexpr std::chrono::seconds kTimeToLive{10};

  Presence(store::Store& store, const std::string& id,
           const controlplane::v1::ReplicaRecord& record);

  // False: the store has not taken it within the time.
  bool AwaitSaid(std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool said_ = false;
  // A key of its own: nobody else wants it.
  store::Election election_;
};

}  // namespace rocegw::sync
