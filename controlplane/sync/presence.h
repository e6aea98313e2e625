// SPDX-License-Identifier: Apache-2.0
// Registration of this controller in the store under a lease: the key is deleted with the process,
// or when the lease expires. Owns a thread; destroyed before its store.
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

  // Returns false if the store has not accepted it in time.
  bool AwaitSaid(std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool said_ = false;
  // Elects on a key of its own, which has no other candidate.
  store::Election election_;
};

}  // namespace rocegw::sync
