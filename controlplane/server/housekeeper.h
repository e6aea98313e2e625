// SPDX-License-Identifier: Apache-2.0
// Keeps the store from growing: gives up its past, and removes what has served: answers under a
// request_id after a day, join tokens after their time. Seals the audit records. One controller of
// a store does it, by election; what it writes carries the fence of its term. Owns a thread; goes
// before its store.
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

// Of entries below "request/" and "join/": those that may go.
std::vector<std::string> ServedKeys(const std::vector<store::Entry>& entries,
                                    identity::TimePoint now);

// Which revision was the newest at which time.
class Past {
 public:
  void Note(identity::TimePoint time, store::Revision revision);
  // The newest revision that was noted at or before `time`, which is forgotten; 0: none.
  store::Revision TakeBefore(identity::TimePoint time);

 private:
  std::deque<std::pair<identity::TimePoint, store::Revision>> noted_;
};

// The work itself, and what it remembers from round to round. One thread.
class Housekeeping {
 public:
  // What has served is looked for this often: it means reading all answers of a day.
  static constexpr std::chrono::minutes kRemoveEvery{10};

  // The store outlives it.
  Housekeeping(store::Store& store, std::chrono::seconds keep_history)
      : store_(store), keep_history_(keep_history), sealer_(store) {}

  // One round as of `now`, in the term of the fence.
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
    std::string candidate;  // for people: host and process
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
