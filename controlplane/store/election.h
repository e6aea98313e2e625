// SPDX-License-Identifier: Apache-2.0
// Who reconciles: candidates put one key under a lease; who made it leads until it goes. Works on
// any store; with SQLite, which one process has to itself, all candidates are in that process.
// Leading is no promise: a leader that was stopped may wake up after its lease has ended and its
// successor has begun. Therefore each write of a leader carries its term's fence as a compare; the
// store then refuses it for good. One thread of its own per election, which calls `changed`.
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

// A time of leading. Terms are ordered by epoch; whoever takes orders refuses those of an earlier
// one than he has seen.
struct Term {
  Revision epoch = 0;  // create revision of the election's key
  Compare fence;       // belongs into every transaction of this term

  bool operator==(const Term& other) const { return epoch == other.epoch; }
};

class Election {
 public:
  struct Options {
    std::string key = "election/reconciler";
    std::string candidate;  // for people: host and process
    std::chrono::seconds time_to_live{10};
    std::chrono::milliseconds retry{500};  // while the store cannot be reached
  };

  // Campaigns until it is destroyed. `changed` gets the term when one begins, nullopt when it ends.
  Election(Store& store, Options options, std::function<void(const std::optional<Term>&)> changed);
  // Resigns: the key is gone when this returns, if the store could be reached.
  ~Election();
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  std::optional<Term> term() const;

 private:
  struct Signal;
  void Run();
  // One try to make the key. The revision at which it was there, by us or by another.
  StatusOr<Revision> Campaign(Lease& lease);
  // Until the key changes, the watch ends, the lease is lost or the election is destroyed.
  Status AwaitChange(Revision from, const Lease& lease);
  void SetTerm(const std::optional<Term>& term);

  Store& store_;
  const Options options_;
  const std::function<void(const std::optional<Term>&)> changed_;
  // Outlives us: a lease's callback may come late.
  std::shared_ptr<Signal> signal_;
  mutable std::mutex mutex_;
  std::optional<Term> term_;
  std::thread thread_;
};

}  // namespace rocegw::store
