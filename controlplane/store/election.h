// SPDX-License-Identifier: Apache-2.0
// Election of a leader: candidates put one key under a lease; the creator leads until the key is
// deleted. Works on any store; with SQLite, which one process owns, all candidates are in that
// process. Leading is not exclusive: a suspended leader may resume after its lease has ended and
// its successor has begun. Therefore each write of a leader carries its term's fence as a compare,
// which the store then refuses. One thread per election, which calls `changed`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "controlplane/store/store.h"

namespace rocegw::store {

// Term of a leader. Terms are ordered by epoch; a receiver of orders refuses those of an earlier
// term than it has seen.
struct Term {
  Revision epoch = 0;  // create revision of the election's key
  Compare fence;       // compare for every transaction of this term

  bool operator==(const Term& other) const { return epoch == other.epoch; }
};

class Election {
 public:
  struct Options {
    std::string key = "election/reconciler";
    std::string candidate;  // for display: host and process
    std::chrono::seconds time_to_live{10};
    std::chrono::milliseconds retry{500};  // interval while the store is unreachable
  };

  // Campaigns until destroyed. `changed` gets the term when one begins, nullopt when it ends.
  Election(Store& store, Options options, std::function<void(const std::optional<Term>&)> changed);
  // Resigns: the key is deleted when this returns, if the store was reachable.
  ~Election();
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  std::optional<Term> term() const;

 private:
  struct Signal;
  void Run();
  // Tries once to create the key. Returns the revision at which it existed, created here or by
  // another.
  StatusOr<Revision> Campaign(Lease& lease);
  // Waits until the key changes, the watch ends, the lease is lost or the election is destroyed.
  Status AwaitChange(Revision from, const Lease& lease);
  void SetTerm(const std::optional<Term>& term);

  Store& store_;
  const Options options_;
  const std::function<void(const std::optional<Term>&)> changed_;
  // Shared: a lease's callback may come after destruction.
  std::shared_ptr<Signal> signal_;
  mutable std::mutex mutex_;
  std::optional<Term> term_;
  std::thread thread_;
};

}  // namespace rocegw::store
