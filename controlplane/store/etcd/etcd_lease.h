// SPDX-License-Identifier: Apache-2.0
// Lease of etcd that is kept alive: three renewals within its time to live, at any member that
// answers. It counts as ended if its last renewal was sent, by this machine's clock, longer ago
// than its time to live. etcd may end it later, and earlier only after a failure of its own,
// against which only a fence helps. One thread per lease.
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

  // `asked`: time at which the lease was requested.
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
  grpc::ClientContext* context_ = nullptr;  // context of the pending renewal
  std::thread thread_;
};

}  // namespace rocegw::store
