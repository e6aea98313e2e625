// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace rocegw::agent {
namespace {

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

bool MakeNonBlocking(const UniqueFd& fd) {
  return fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK) == 0;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Start state of a program: the three streams and no other descriptor of ours, default signal
// handling (the agent blocks those that it reads), its own process group.
class Beginning {
 public:
  Beginning() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Beginning() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    ControlLoop& loop, const std::vector<std::string>& words,
    const std::vector<std::string>& environment, Handlers handlers) {
  std::unique_ptr<ChildProcess> child(new ChildProcess(loop, std::move(handlers)));
  if (Status status = child->Launch(words, environment); !status.ok()) return status;
  child->Watch();
  return child;
}

Status ChildProcess::Launch(const std::vector<std::string>& words,
                            const std::vector<std::string>& environment) {
  Pipe input;
  Pipe output;
  Pipe error;
  if (!Make(input) || !Make(output) || !Make(error)) return {errno, "no pipe for a program"};
  if (!MakeNonBlocking(output.read) || !MakeNonBlocking(error.read))
    return {errno, "no pipe for a program"};
  Beginning beginning;
  posix_spawn_file_actions_adddup2(&beginning.actions, input.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&beginning.actions, output.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&beginning.actions, error.write.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&beginning.actions, STDERR_FILENO + 1);
  const int failed = posix_spawn(&pid_, words[0].c_str(), &beginning.actions, &beginning.attributes,
                                 Pointers(words).data(), Pointers(environment).data());
  if (failed != 0) {
    pid_ = -1;
    return {failed, "cannot start " + words[0]};
  }
  input_ = std::move(input.write);
  output_ = std::move(output.read);
  error_ = std::move(error.read);
  // Not reaped yet, so the number is still its own.
  process_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  return process_.valid() ? Status() : Status(errno, "cannot watch " + words[0]);
}

void ChildProcess::Watch() {
  watches_[0] = loop_.Watch(output_.get(), EPOLLIN, [this](uint32_t) { (void)ReadOutput(); });
  watches_[1] = loop_.Watch(error_.get(), EPOLLIN, [this](uint32_t) { ReadError(); });
  watches_[2] = loop_.Watch(process_.get(), EPOLLIN, [this](uint32_t) { OnEnd(); });
}

ChildProcess::~ChildProcess() {
  *alive_ = false;
  for (const auto watch : watches_) loop_.Unwatch(watch);
  if (pid_ < 0) return;
  Kill();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::Kill() {
  if (pid_ > 0) kill(-pid_, SIGKILL);
}

bool ChildProcess::ReadOutput() {
  // Both outlive this object, which the handler may destroy.
  const std::shared_ptr<bool> alive = alive_;
  const auto tell = handlers_.line;
  char bytes[4096];
  ssize_t count = 0;
  while ((count = read(output_.get(), bytes, sizeof bytes)) > 0) {
    for (const char c : std::string_view(bytes, static_cast<size_t>(count))) {
      if (c != '\n') {
        too_long_ = too_long_ || line_.size() == kLongestLine;
        if (!too_long_) line_ += c;
        continue;
      }
      const std::string line = std::exchange(line_, {});
      // Reads what the program wrote to stderr before the line.
      ReadError();
      if (!std::exchange(too_long_, false)) tell(line);
      if (!*alive) return false;
    }
  }
  // Otherwise the end of the stream would be reported for ever.
  if (count == 0) loop_.Unwatch(std::exchange(watches_[0], 0));
  return true;
}

void ChildProcess::ReadError() {
  char bytes[4096];
  ssize_t count = 0;
  while ((count = read(error_.get(), bytes, sizeof bytes)) > 0) {
    errors_.append(bytes, static_cast<size_t>(count));
    if (errors_.size() > kKeptErrors) errors_.erase(0, errors_.size() - kKeptErrors);
  }
  if (count == 0) loop_.Unwatch(std::exchange(watches_[1], 0));
}

std::string ChildProcess::LastError() const {
  const size_t end = errors_.find_last_not_of("\n ");
  if (end == std::string::npos) return {};
  const size_t before = errors_.rfind('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return errors_.substr(begin, end - begin + 1);
}

void ChildProcess::OnEnd() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return;
  pid_ = -1;
  loop_.Unwatch(std::exchange(watches_[2], 0));
  if (!ReadOutput()) return;
  ReadError();
  const auto tell = handlers_.ended;
  tell(status);
}

}  // namespace rocegw::agent
