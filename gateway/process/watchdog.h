// SPDX-License-Identifier: Apache-2.0
// Watchdog of the process's long-lived threads. A thread is stuck if it has not beaten for ten
// seconds and either slept in one system call all the time or used ten seconds of CPU time. A
// thread that waits for a CPU is not stuck: neither a loaded machine nor a process that was stopped
// and continued raises an alarm. The log gets the name of the thread and its stacks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/base/timing/heartbeat.h"

namespace rocegw::process {

// State of a thread from proc(5).
struct ThreadSample {
  char state = '?';  // 'R' runs or is runnable, 'S' and 'D' sleep
  Duration cpu;      // CPU time since its start
};

// Judgement of one thread by samples at equal intervals.
class StuckJudge {
 public:
  explicit StuckJudge(Duration stuck_after) : stuck_after_(stuck_after) {}

  // Returns true if the thread is stuck. `period`: nominal interval since the last sample; a longer
  // pause of the whole process does not count.
  bool OnSample(uint64_t beats, const ThreadSample& sample, Duration period);
  // Returns how long the thread has slept or spun without a beat.
  Duration stuck_for() const { return slept_ > spun_ ? slept_ : spun_; }

 private:
  Duration stuck_after_;
  bool known_ = false;
  uint64_t beats_ = 0;
  Duration cpu_;
  Duration slept_;  // within one sleep
  Duration spun_;   // since the last beat
};

class Watchdog {
 public:
  explicit Watchdog(Duration period = Seconds(1), Duration stuck_after = Seconds(10))
      : period_(period), stuck_after_(stuck_after) {}
  ~Watchdog() { Stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Adds a thread, before Start. The heartbeat outlives the watchdog's run.
  void Watch(std::string name, const Heartbeat& heartbeat);
  void Start();
  // Stops and removes all threads.
  void Stop();

  // Returns text such as "worker 1 has been stuck for 12 s in pipe_read"; empty: no thread is
  // stuck. Any thread.
  std::string Stuck() const;

 private:
  struct Watched {
    std::string name;
    const Heartbeat* heartbeat;
    StuckJudge judge;
    bool stuck = false;
  };

  void Run();
  void Look();

  const Duration period_;
  const Duration stuck_after_;
  std::vector<Watched> watched_;
  mutable std::mutex mutex_;  // guards the two fields below
  bool stop_ = false;
  std::string stuck_;
  std::condition_variable changed_;
  std::thread thread_;
};

// Describes a thread of this process: state, system call, kernel stack if readable, and call stack.
// Interrupts the thread with a signal. One caller at a time.
std::vector<std::string> DescribeThread(pid_t thread);

}  // namespace rocegw::process
