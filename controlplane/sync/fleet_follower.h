// SPDX-License-Identifier: Apache-2.0
// Follower of the store: updates the fleet's view and placement with each transaction, and reports
// the changes to listeners. Owns a thread. Any thread may call Read and WhenReached, but not within
// Read or a listener; listeners run on the follower's thread, under its lock, and must be quick.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/controllers/fleet_view.h"
#include "controlplane/controllers/lost_gateways.h"
#include "controlplane/controllers/placement.h"
#include "controlplane/store/store.h"

namespace rocegw::sync {

struct Fleet {
  controllers::FleetView view;
  controllers::Placement placement;
  // Guards (see api/writes/write.h) with the revision of their last change.
  std::map<std::string, store::Revision> guards;
  // Records of certificates, by key (identity/enrollment.h).
  std::map<std::string, store::Entry> certificates;
  // Record of the rotations of the fleet's keys (identity/fleet_key_rotation.h).
  std::optional<store::Entry> fleet_keys;
  controllers::Replicas replicas;
};

struct FleetChange {
  // Everything may have changed: the view was loaded again after a gap in the history.
  bool everything = false;
  bool replicas = false;  // a controller was added or removed
  std::vector<controllers::Changed> changed;
  std::vector<controllers::Move> moves;
};

// Changes of one transaction.
struct PastChange {
  store::Revision revision = 0;
  std::vector<model::ResourceName> names;
};

class FleetFollower {
 public:
  using Listener = std::function<void(const Fleet&, const FleetChange&)>;
  using ListenerId = uint64_t;
  // Number of transactions kept for queries of past changes.
  static constexpr size_t kRemembered = 16384;

  // Loads everything before it returns. The store must outlive it.
  static StatusOr<std::unique_ptr<FleetFollower>> Start(store::Store& store);
  ~FleetFollower();
  FleetFollower(const FleetFollower&) = delete;
  FleetFollower& operator=(const FleetFollower&) = delete;

  // Calls reader(const Fleet&) while nothing changes.
  template <typename Reader>
  auto Read(const Reader& reader) const {
    const std::lock_guard lock(mutex_);
    return reader(static_cast<const Fleet&>(fleet_));
  }
  // Calls once the view has this revision or a later one: at once, or later on the follower's
  // thread, without its lock. Not called after the follower's destruction.
  void WhenReached(store::Revision revision, std::function<void()> call);
  // Calls once the view has everything that was acknowledged until now, by any controller; or with
  // the store's error. On any thread, without a lock.
  void WhenNewest(std::function<void(const StatusOr<store::Revision>&)> call);
  // Adds a listener, until Unlisten has returned.
  ListenerId Listen(Listener listener);
  void Unlisten(ListenerId id);
  // Returns the first transaction after `revision` that changed any object; within Read or a
  // listener only. Revision 0: there is none yet; nullopt: the next one is not kept any more.
  std::optional<PastChange> NextAfter(store::Revision revision) const;
  // Returns OkStatus while it follows; else why it cannot, for now or for good: the view is then of
  // the past.
  Status status() const;

 private:
  explicit FleetFollower(store::Store& store) : store_(store) {}
  Status Load();
  void Run();
  void ApplyOne(const store::Changes& changes);
  void Note(const store::Change& change);
  void Remember(store::Revision revision, const FleetChange& change);
  void Tell(const FleetChange& change);
  // Removes and returns the calls whose revision is reached.
  std::vector<std::function<void()>> TakeReached();

  store::Store& store_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  std::multimap<store::Revision, std::function<void()>> waiting_;
  Fleet fleet_;
  Status status_;
  std::map<ListenerId, Listener> listeners_;
  ListenerId next_listener_ = 1;
  std::deque<PastChange> past_;
  store::Revision remembers_after_ = 0;  // all later transactions are in past_
  std::unique_ptr<store::BlockingWatch> watch_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::sync
