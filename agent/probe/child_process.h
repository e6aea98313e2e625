// SPDX-License-Identifier: Apache-2.0
// Child process of the agent, with pipes for its standard streams and its own process group. Its
// input is closed when the agent ends, for whatever reason; it is killed and reaped with this
// object. On the loop, which outlives it; handlers are called from there, not from within calls,
// and may destroy it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

class ChildProcess {
 public:
  struct Handlers {
    // Line of its standard output, without its end. Lines longer than kLongestLine are dropped.
    std::function<void(std::string_view)> line;
    // Called after its exit and all its output. `status`: of waitpid.
    std::function<void(int status)> ended;
  };
  static constexpr size_t kLongestLine = 4096;

  // `words`: the program's path and its arguments. `environment`: "NAME=VALUE".
  static StatusOr<std::unique_ptr<ChildProcess>> Start(ControlLoop& loop,
                                                       const std::vector<std::string>& words,
                                                       const std::vector<std::string>& environment,
                                                       Handlers handlers);
  // Kills it if it runs, and waits for its exit.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void Kill();
  bool runs() const { return pid_ > 0; }
  // Returns the last line of its standard error.
  std::string LastError() const;

 private:
  ChildProcess(ControlLoop& loop, Handlers handlers)
      : loop_(loop), handlers_(std::move(handlers)) {}
  Status Launch(const std::vector<std::string>& words, const std::vector<std::string>& environment);
  void Watch();
  // Returns false if the handler destroyed this object.
  bool ReadOutput();
  void ReadError();
  void OnEnd();

  ControlLoop& loop_;
  const Handlers handlers_;
  pid_t pid_ = -1;  // -1: none, or reaped
  UniqueFd process_;
  UniqueFd input_;
  UniqueFd output_;
  UniqueFd error_;
  ControlLoop::WatchId watches_[3] = {};
  std::string line_;  // incomplete line
  bool too_long_ = false;
  std::string errors_;  // latest ones
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
