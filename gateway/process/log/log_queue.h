// SPDX-License-Identifier: Apache-2.0
// Queue of log lines for a descriptor that may block, such as a standard error that is a pipe
// without a reader. A thread of the queue writes; callers only append. The queue is bounded in
// lines and bytes: a line that does not fit is dropped, counted, and reported in the next written
// line.
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
  // The descriptor must stay open while the process runs: the thread may be inside a write after
  // the queue is destroyed.
  explicit LogQueue(int descriptor);
  // Does not wait: the thread ends with its current write.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // Appends a line. Any thread. Never blocks on the descriptor.
  void Append(std::string_view line);
  // Waits until all lines are written, at most that long. Returns false if they are not.
  bool Flush(Duration within);
  // Returns the number of dropped lines since the start.
  uint64_t dropped() const;

 private:
  struct Shared {
    int descriptor = -1;
    std::mutex mutex;  // guards the fields below; never held during a write
    std::condition_variable changed;
    std::deque<std::string> lines;
    size_t bytes = 0;
    bool writing = false;
    bool stop = false;
    uint64_t dropped = 0;
    uint64_t reported = 0;  // part of `dropped`
  };

  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace rocegw::process
