// SPDX-License-Identifier: Apache-2.0
// Announces a donor to the agent of its host, and has the donor follow the agent's orders. Owns a
// thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/fleet/announcement.h"

namespace rocegw::far {

class Announcer {
 public:
  struct Calls {
    // Says what the donor is now. The announcer adds the generation of the orders.
    std::function<Announcement()> state;
    std::function<void(const DonorOrders&)> follow;
  };

  Announcer() = default;
  ~Announcer() { Stop(); }
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  // `folder` exists; `name`: of the donor, unique on the host. Takes older orders over at once.
  // While there are none the donor drains: a fleet may have given it quotas, or drain it. EBUSY:
  // another process announces a donor of this name.
  Status Start(const std::string& folder, const std::string& name, Calls calls);
  // Withdraws the announcement.
  void Stop();

 private:
  void Run();
  void Look();
  void Follow();

  std::string announcement_;
  std::string orders_;
  UniqueFd lock_;
  Calls calls_;
  DonorOrders followed_;
  std::string last_problem_;    // logged once
  std::string orders_problem_;  // the same
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::far
