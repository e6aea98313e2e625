// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/child_process.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "gateway/spawn/piped_program.h"

namespace rocegw::agent {
namespace {

constexpr size_t kKeptErrors = 4096;

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
  auto program = StartWithPipes(words, &environment);
  if (!program.ok()) return program.status();
  pid_ = program->pid;
  input_ = std::move(program->input);
  output_ = std::move(program->output);
  error_ = std::move(program->error);
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
