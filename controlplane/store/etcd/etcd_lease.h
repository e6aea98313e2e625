// SPDX-License-Identifier: Apache-2.0
// A lease of etcd that is kept alive: three times within its time to live, at whichever member
// answers. It counts as ended when it was last renewed, by this machine's clock at sending, longer
// ago than its time to live; etcd may let it end later, never earlier but for its own failures,
// against which only a fence helps. One thread of its own.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "controlplane/store/etcd/etcd_endpoints.h"
#include "controlplane/store/store.h"

namespace rocegw::store {

class EtcdLease : public Lease {
 public:
  using Clock = std::chrono::steady_clock;

  // Of a lease that was asked for at `asked`.
  EtcdLease(EtcdEndpoints& endpoints, LeaseId id, std::chrono::seconds time_to_live,
            Clock::time_point asked, std::function<void()> lost);
  // Revokes it, if a member answers within a second or two.
  ~EtcdLease() override;

  LeaseId id() const override { return id_; }
  bool alive() const override { return Clock::now() < expires_.load(); }

 private:
  enum class Renewal { kDone, kFailed, kGone };

  void Run();
  Renewal Renew();
  void Revoke();

  EtcdEndpoints& endpoints_;
  const LeaseId id_;
  const std::chrono::seconds time_to_live_;
  const std::function<void()> lost_;
  std::atomic<Clock::time_point> expires_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  grpc::ClientContext* context_ = nullptr;  // of the renewal under way
  std::thread thread_;
};

}  // namespace rocegw::store
