// SPDX-License-Identifier: Apache-2.0
// Callback thread of a local backend: posted functions run there in order, so that no writer runs,
// or waits for, callers' code. Thread safe. The destructor runs what was posted; nothing may be
// posted then.
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
