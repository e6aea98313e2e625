// SPDX-License-Identifier: Apache-2.0
// Keeps the store from growing: compacts old revisions, removes answers of request_ids after a day
// and join tokens after their expiry, and seals the audit records. One elected controller of a
// store does it; its writes carry the fence of its term. Owns a thread; destroyed before its store.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/audit/sealer.h"
#include "controlplane/identity/certificate.h"
#include "controlplane/store/election.h"
#include "controlplane/store/store.h"

namespace rocegw::server {

inline constexpr std::chrono::hours kKeepRequests(24);

// Returns the removable entries below "request/" and "join/".
std::vector<std::string> ServedKeys(const std::vector<store::Entry>& entries,
                                    identity::TimePoint now);

// Record of the newest revision at each time.
class Past {
 public:
  void Note(identity::TimePoint time, store::Revision revision);
  // Returns and forgets the newest revision that was noted at or before `time`; 0: none.
  store::Revision TakeBefore(identity::TimePoint time);

 private:
  std::deque<std::pair<identity::TimePoint, store::Revision>> noted_;
};

// Housekeeping work with its state between rounds. One thread.
class Housekeeping {
 public:
  // Interval of removals: each reads all answers of a day.
  static constexpr std::chrono::minutes kRemoveEvery{10};

  // The store outlives it.
  Housekeeping(store::Store& store, std::chrono::seconds keep_history)
      : store_(store), keep_history_(keep_history), sealer_(store) {}

  // Runs one round as of `now`, in the term of the fence.
  Status Round(const store::Compare& fence, identity::TimePoint now);

 private:
  store::Store& store_;
  const std::chrono::seconds keep_history_;
  audit::Sealer sealer_;
  Past past_;
  std::optional<identity::TimePoint> removed_;
};

class Housekeeper {
 public:
  struct Options {
    std::string candidate;  // for display: host and process
    std::chrono::seconds interval{60};
    std::chrono::seconds keep_history = std::chrono::hours(1);
  };
  Housekeeper(store::Store& store, Options options);
  ~Housekeeper();
  Housekeeper(const Housekeeper&) = delete;
  Housekeeper& operator=(const Housekeeper&) = delete;

  bool leads() const { return election_.term().has_value(); }

 private:
  void Run();

  store::Store& store_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  store::Election election_;
  std::thread thread_;
};

}  // namespace rocegw::server
