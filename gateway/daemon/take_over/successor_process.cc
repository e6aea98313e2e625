// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/take_over/successor_process.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "gateway/process/exit_code.h"

extern char** environ;

namespace rocegw::daemon {
namespace {

constexpr char kTakeOver[] = "--take-over";
constexpr char kDetach[] = "--detach";
constexpr char kIdle[] = "--idle";
// Variables of the environment over RunAnew.
constexpr char kTries[] = "ROCEGW_TAKE_OVER_TRIES";
constexpr char kToParent[] = "ROCEGW_TAKE_OVER_PARENT";

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> WithTakeOver(std::vector<std::string> words) {
  std::erase(words, kDetach);
  if (std::ranges::find(words, kTakeOver) == words.end()) words.emplace_back(kTakeOver);
  return words;
}

}  // namespace

Invocation Invocation::Of(int argc, char** argv) {
  Invocation invocation;
  invocation.words.assign(argv, argv + argc);
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length > 0) invocation.program.assign(path.data(), static_cast<size_t>(length));
  const char* const notify = std::getenv("NOTIFY_SOCKET");
  if (notify != nullptr) invocation.notify_socket = notify;
  return invocation;
}

StatusOr<UniqueFd> SpawnSuccessor(const Invocation& invocation) {
  std::vector<std::string> words = WithTakeOver(invocation.words);
  const std::vector<char*> arguments = Pointers(words);
  std::vector<std::string> variables;
  // Tries of an earlier take-over are not those of this one.
  ::unsetenv(kTries);
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  if (!invocation.notify_socket.empty())
    variables.push_back("NOTIFY_SOCKET=" + invocation.notify_socket);
  const std::vector<char*> environment = Pointers(variables);
  // Descriptors of libraries may lack close-on-exec.
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, invocation.program.c_str(), &actions, &attributes,
                                  arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return Status(error, "take-over: " + invocation.program + ": " + std::strerror(error));
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!process.valid()) {
    // The end of the process could not be watched, for example without a free descriptor.
    const int reason = errno;
    (void)::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, 0);
    return Status(reason, std::string("take-over: pidfd_open: ") + std::strerror(reason));
  }
  return process;
}

void Kill(const UniqueFd& process) {
  (void)::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

void KillAndReap(const UniqueFd& process) {
  Kill(process);
  siginfo_t info{};
  (void)::waitid(P_PIDFD, static_cast<id_t>(process.get()), &info, WEXITED);
}

std::string Reap(const UniqueFd& process) {
  siginfo_t info{};
  (void)::waitid(P_PIDFD, static_cast<id_t>(process.get()), &info, WEXITED | WNOHANG);
  return (info.si_code == CLD_EXITED ? "ended with status " : "was killed by signal ") +
         std::to_string(info.si_status);
}

void RunAnew(const Invocation& invocation, Detached& detached) {
  detached.Keep();
  std::vector<std::string> words = WithTakeOver(invocation.words);
  if (!invocation.notify_socket.empty())
    ::setenv("NOTIFY_SOCKET", invocation.notify_socket.c_str(), 1);
  ::execv("/proc/self/exe", Pointers(words).data());
}

void RunIdle(const Invocation& invocation) {
  std::vector<std::string> words = {invocation.words.front(), kIdle};
  // Descriptors of libraries may lack close-on-exec.
  (void)::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv("/proc/self/exe", Pointers(words).data());
}

void AwaitStop() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) sigaddset(&ends, signal);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  int signal = 0;
  do {
    (void)::sigwait(&ends, &signal);
  } while (signal != SIGTERM && signal != SIGINT);
}

int CountTries() {
  const char* const before = std::getenv(kTries);
  const int tries = before == nullptr ? 0 : std::atoi(before);
  ::setenv(kTries, std::to_string(tries + 1).c_str(), 1);
  return tries;
}

void Detached::Keep() {
  if (!to_parent_.valid() || ::fcntl(to_parent_.get(), F_SETFD, 0) != 0) return;
  ::setenv(kToParent, std::to_string(to_parent_.get()).c_str(), 1);
}

void Detached::TakeUp() {
  const char* const kept = std::getenv(kToParent);
  if (kept == nullptr) return;
  to_parent_.Reset(std::atoi(kept));
  (void)::fcntl(to_parent_.get(), F_SETFD, FD_CLOEXEC);
  ::unsetenv(kToParent);
}

int Detached::Fork() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return process::kEnvironment;
  const UniqueFd from_child(ends[0]);
  to_parent_.Reset(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return process::kEnvironment;
  if (child == 0) {
    ::setsid();
    return kGoOn;
  }
  to_parent_.Reset();
  char byte = 0;
  if (::read(from_child.get(), &byte, 1) == 1) return process::kOk;
  int status = 0;
  if (::waitpid(child, &status, 0) == child && WIFEXITED(status)) return WEXITSTATUS(status);
  std::cerr << "rocegwd: the new daemon ended before it served\n";
  return process::kInternal;
}

void Detached::Serves() {
  if (to_parent_.valid()) (void)!::write(to_parent_.get(), "S", 1);
  to_parent_.Reset();
}

}  // namespace rocegw::daemon
