// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/adapter_process/program_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/base/unique_fd.h"
#include "gateway/spawn/piped_program.h"

namespace rocegw::migration {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKeptErrors = 4096;

// The child, killed with its group and reaped at the end of the scope.
class Child {
 public:
  ~Child() {
    if (program.pid <= 0) return;
    kill(-program.pid, SIGKILL);
    int status = 0;
    while (waitpid(program.pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  PipedProgram program;
};

// Returns why the program could not be started; empty: it runs.
std::string Start(const std::vector<std::string>& words, PipedProgram& program) {
  if (words.empty()) return "no program";
  auto started = StartWithPipes(words, nullptr);
  if (!started.ok()) {
    const Status& status = started.status();
    return status.text() + ": " + std::strerror(status.error());
  }
  program = std::move(*started);
  return {};
}

// Reads what there is; returns false at the end of the stream.
bool Drain(const UniqueFd& fd, std::string& to, size_t most) {
  char bytes[16384];
  for (;;) {
    const ssize_t count = read(fd.get(), bytes, sizeof bytes);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    to.append(bytes, static_cast<size_t>(count));
    if (to.size() > most) return true;
  }
}

// Exchanges input and output until the program closes its output, or a limit is reached.
void Exchange(PipedProgram& program, const std::string& input, const ProgramLimits& limits,
              Clock::time_point until, ProgramRun& run) {
  size_t written = 0;
  bool output_open = true;
  bool error_open = true;
  while (output_open) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) {
      run.timed_out = true;
      return;
    }
    const bool writes = program.input.valid() && written < input.size();
    pollfd fds[4] = {{program.output.get(), POLLIN, 0},
                     {error_open ? program.error.get() : -1, POLLIN, 0},
                     {writes ? program.input.get() : -1, POLLOUT, 0},
                     {limits.stop_fd, POLLIN, 0}};
    (void)poll(fds, 4, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (fds[3].revents != 0) {
      run.stopped = true;
      return;
    }
    if (fds[0].revents != 0) output_open = Drain(program.output, run.output, limits.most_output);
    if (run.output.size() > limits.most_output) {
      run.too_much = true;
      return;
    }
    if (fds[1].revents != 0) {
      error_open = Drain(program.error, run.last_error, kKeptErrors * 2);
      if (run.last_error.size() > kKeptErrors)
        run.last_error.erase(0, run.last_error.size() - kKeptErrors);
    }
    if (fds[2].revents == 0) continue;
    const ssize_t count =
        write(program.input.get(), input.data() + written, input.size() - written);
    if (count > 0) written += static_cast<size_t>(count);
    // A program that does not read its input is not at fault for that.
    const bool failed = count < 0 && errno != EAGAIN && errno != EINTR;
    if (failed || written == input.size()) program.input = UniqueFd();
  }
}

// Waits for the exit of a program that has closed its output.
void AwaitExit(PipedProgram& program, const ProgramLimits& limits, Clock::time_point until,
               ProgramRun& run) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, program.pid, 0)));
  pollfd fds[2] = {{process.get(), POLLIN, 0}, {limits.stop_fd, POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  if (!process.valid() || left.count() <= 0 ||
      poll(fds, 2, static_cast<int>(std::min<int64_t>(left.count(), INT32_MAX))) < 1) {
    run.timed_out = true;
    return;
  }
  if (fds[0].revents == 0) {
    run.stopped = true;
    return;
  }
  int status = 0;
  if (waitpid(program.pid, &status, 0) != program.pid) return;
  // Children that it left behind go too.
  kill(-program.pid, SIGKILL);
  program.pid = -1;
  if (WIFEXITED(status)) run.exit_status = WEXITSTATUS(status);
}

// A program that ends before it has read its input would otherwise end this process.
class IgnorePipe {
 public:
  IgnorePipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~IgnorePipe() {
    const timespec none{};
    if (sigismember(&before_, SIGPIPE) == 0) sigtimedwait(&pipe_, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  IgnorePipe(const IgnorePipe&) = delete;
  IgnorePipe& operator=(const IgnorePipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace

ProgramRun RunProgram(const std::vector<std::string>& words, const std::string& input,
                      const ProgramLimits& limits) {
  const IgnorePipe ignore_pipe;
  const auto until = Clock::now() + limits.deadline;
  ProgramRun run;
  Child child;
  PipedProgram& program = child.program;
  run.problem = Start(words, program);
  if (!run.problem.empty()) return run;
  if (input.empty()) program.input = UniqueFd();
  Exchange(program, input, limits, until, run);
  if (!run.timed_out && !run.too_much && !run.stopped) AwaitExit(program, limits, until, run);
  (void)Drain(program.error, run.last_error, kKeptErrors * 2);
  return run;
}

}  // namespace rocegw::migration
