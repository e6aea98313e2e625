// SPDX-License-Identifier: Apache-2.0
// A program that is started beside the agent, with pipes for its standard streams and a process
// group of its own. Its input ends with the agent, whatever ends that; it is killed and reaped with
// this object. On the loop, which outlives it; handlers are called from there, not from within
// calls, and may destroy it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

class ChildProcess {
 public:
  struct Handlers {
    // A line of its standard output, without its end. One that is longer than kLongestLine, or the
    // rest of one, is left out.
    std::function<void(std::string_view)> line;
    // It has ended and all it wrote was handed over. status: of waitpid.
    std::function<void(int status)> ended;
  };
  static constexpr size_t kLongestLine = 4096;

  // words: the program's path and its arguments. environment: "NAME=VALUE".
  static StatusOr<std::unique_ptr<ChildProcess>> Start(session::ControlLoop& loop,
                                                       const std::vector<std::string>& words,
                                                       const std::vector<std::string>& environment,
                                                       Handlers handlers);
  // Kills it if it runs, and waits for its end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void Kill();
  bool runs() const { return pid_ > 0; }
  // The last line of its standard error.
  std::string LastError() const;

 private:
  ChildProcess(session::ControlLoop& loop, Handlers handlers)
      : loop_(loop), handlers_(std::move(handlers)) {}
  Status Launch(const std::vector<std::string>& words, const std::vector<std::string>& environment);
  void Watch();
  // False: it was destroyed meanwhile.
  bool ReadOutput();
  void ReadError();
  void OnEnd();

  session::ControlLoop& loop_;
  const Handlers handlers_;
  pid_t pid_ = -1;  // -1: none, or reaped
  UniqueFd process_;
  UniqueFd input_;
  UniqueFd output_;
  UniqueFd error_;
  session::ControlLoop::WatchId watches_[3] = {};
  std::string line_;  // what has come of it
  bool too_long_ = false;
  std::string errors_;  // the last of them
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
