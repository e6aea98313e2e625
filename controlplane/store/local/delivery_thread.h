// SPDX-License-Identifier: Apache-2.0
// The thread on which a local backend calls back: what is posted runs there in order, so that no
// writer ever runs, or waits for, what a caller does with an answer. Thread safe. Its destruction
// runs what has been posted; nothing may be posted any more then.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rocegw::store {

class DeliveryThread {
 public:
  DeliveryThread();
  ~DeliveryThread();
  DeliveryThread(const DeliveryThread&) = delete;
  DeliveryThread& operator=(const DeliveryThread&) = delete;

  void Post(std::function<void()> work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::vector<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::store
