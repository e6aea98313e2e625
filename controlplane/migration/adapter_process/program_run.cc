// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/adapter_process/program_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gateway/base/unique_fd.h"

extern char** environ;

namespace rocegw::migration {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKeptErrors = 4096;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

bool Make(Pipe& pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe = {UniqueFd(ends[0]), UniqueFd(ends[1])};
  return true;
}

void MakeNonBlocking(const UniqueFd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

// The child, killed with its group and reaped at the end of the scope.
class Child {
 public:
  ~Child() {
    if (pid <= 0) return;
    kill(-pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_t pid = -1;
  Pipe input;
  Pipe output;
  Pipe error;
};

std::string Start(const std::vector<std::string>& words, Child& child) {
  if (words.empty()) return "no program";
  if (!Make(child.input) || !Make(child.output) || !Make(child.error)) return "no pipe";
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_adddup2(&actions, child.input.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child.output.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child.error.write.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const int failed =
      posix_spawnp(&child.pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  child.input.read = UniqueFd();
  child.output.write = UniqueFd();
  child.error.write = UniqueFd();
  if (failed == 0) return {};
  child.pid = -1;
  return "cannot start " + words[0] + ": " + std::strerror(failed);
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
void Exchange(Child& child, const std::string& input, const ProgramLimits& limits,
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
    const bool writes = child.input.write.valid() && written < input.size();
    pollfd fds[3] = {{child.output.read.get(), POLLIN, 0},
                     {error_open ? child.error.read.get() : -1, POLLIN, 0},
                     {writes ? child.input.write.get() : -1, POLLOUT, 0}};
    (void)poll(fds, 3, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (fds[0].revents != 0) output_open = Drain(child.output.read, run.output, limits.most_output);
    if (run.output.size() > limits.most_output) {
      run.too_much = true;
      return;
    }
    if (fds[1].revents != 0) {
      error_open = Drain(child.error.read, run.last_error, kKeptErrors * 2);
      if (run.last_error.size() > kKeptErrors)
        run.last_error.erase(0, run.last_error.size() - kKeptErrors);
    }
    if (fds[2].revents == 0) continue;
    const ssize_t count =
        write(child.input.write.get(), input.data() + written, input.size() - written);
    if (count > 0) written += static_cast<size_t>(count);
    // A program that does not read its input is not at fault for that.
    const bool failed = count < 0 && errno != EAGAIN && errno != EINTR;
    if (failed || written == input.size()) child.input.write = UniqueFd();
  }
}

// Waits for the exit of a program that has closed its output.
void AwaitExit(Child& child, Clock::time_point until, ProgramRun& run) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  pollfd exit{process.get(), POLLIN, 0};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  if (!process.valid() || left.count() <= 0 ||
      poll(&exit, 1, static_cast<int>(std::min<int64_t>(left.count(), INT32_MAX))) != 1) {
    run.timed_out = true;
    return;
  }
  int status = 0;
  if (waitpid(child.pid, &status, 0) != child.pid) return;
  // Children that it left behind go too.
  kill(-child.pid, SIGKILL);
  child.pid = -1;
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
  run.problem = Start(words, child);
  if (!run.problem.empty()) return run;
  MakeNonBlocking(child.input.write);
  MakeNonBlocking(child.output.read);
  MakeNonBlocking(child.error.read);
  if (input.empty()) child.input.write = UniqueFd();
  Exchange(child, input, limits, until, run);
  if (!run.timed_out && !run.too_much) AwaitExit(child, until, run);
  (void)Drain(child.error.read, run.last_error, kKeptErrors * 2);
  return run;
}

}  // namespace rocegw::migration
