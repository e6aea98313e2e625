// SPDX-License-Identifier: Apache-2.0
// Lines on their way to a descriptor that may block, such as a standard error that is a pipe which
// no program reads. A thread of the queue writes; callers only append. The queue is bounded in
// lines and bytes: what does not fit is dropped, counted, and reported in the next line that is
// written.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gateway/base/time.h"

namespace rocegw::process {

class LogQueue {
 public:
  // The descriptor stays open for as long as the process runs: the thread may be inside of a write
  // when the queue is gone.
  explicit LogQueue(int descriptor);
  // Does not wait: the thread ends when its write does.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // Any thread. Never blocks on the descriptor.
  void Append(std::string_view line);
  // Waits until all lines are written, at most that long. False: they are not.
  bool Flush(Duration within);
  // Since the start.
  uint64_t dropped() const;

 private:
  struct Shared {
    int descriptor = -1;
    std::mutex mutex;  // guards all below; never held over a write
    std::condition_variable changed;
    std::deque<std::string> lines;
    size_t bytes = 0;
    bool writing = false;
    bool stop = false;
    uint64_t dropped = 0;
    uint64_t reported = 0;  // of dropped
  };

  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace rocegw::process
