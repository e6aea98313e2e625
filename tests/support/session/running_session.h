// SPDX-License-Identifier: Apache-2.0
// Session host at a socket whose control loop and workers have their own threads.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {

class RunningSession {
 public:
  explicit RunningSession(SessionHost& host)
      : host_(host), path_("/tmp/rocegw-session-" + std::to_string(::getpid())) {
    EXPECT_TRUE(host_.server->Listen({path_}).ok());
    for (auto& worker : host_.workers) {
      workers_.emplace_back([&worker, this] {
        while (!stop_.load()) {
          pollfd wake{worker->link.worker_wake_fd, POLLIN, 0};
          ::poll(&wake, 1, 10);
          uint64_t value = 0;
          (void)!::read(worker->link.worker_wake_fd, &value, sizeof value);
          worker->Pump();
        }
      });
    }
    control_ = std::thread([this] { host_.loop.Run(); });
  }
  // Shuts the server down, with all objects, and ends the threads.
  ~RunningSession() {
    std::atomic<bool> gone{false};
    host_.loop.Post([&] { host_.server->Shutdown([&] { gone = true; }); });
    while (!gone.load()) ::sched_yield();
    host_.loop.Stop();
    control_.join();
    stop_ = true;
    for (std::thread& worker : workers_) worker.join();
    EXPECT_EQ(host_.BrokenRules(), std::vector<std::string>());
    EXPECT_EQ(host_.LinkedObjects(), 0u);
  }
  RunningSession(const RunningSession&) = delete;
  RunningSession& operator=(const RunningSession&) = delete;

  const std::string& path() const { return path_; }

 private:
  SessionHost& host_;
  std::string path_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
  std::thread control_;
};

}  // namespace rocegw::testing
