// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/daemon/daemon_process.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace rocegw::testing {
namespace {

constexpr int kPatienceMs = 20000;

}  // namespace

DaemonProcess::DaemonProcess(const NetworkNamespace& where, std::string program,
                             std::string directory, const std::vector<std::string>& arguments,
                             uid_t uid)
    : directory_(std::move(directory)) {
  const NetworkNamespace::Inside inside(where);
  Start(std::move(program), arguments, uid);
}

DaemonProcess::DaemonProcess(std::string program, std::string directory,
                             const std::vector<std::string>& arguments)
    : directory_(std::move(directory)) {
  Start(std::move(program), arguments, 0);
}

void DaemonProcess::Start(std::string program, const std::vector<std::string>& arguments,
                          uid_t uid) {
  // A socket file: abstract names would belong to the other network namespace.
  notify_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string notify_path = directory_ + "/notify";
  std::strcpy(address.sun_path, notify_path.c_str());
  unlink(notify_path.c_str());
  EXPECT_EQ(bind(notify_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(chmod(notify_path.c_str(), 0777), 0);

  std::vector<std::string> words = {std::move(program)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  static int started = 0;
  log_ = "log" + std::to_string(started++);
  const std::string log = directory_ + "/" + log_;
  const std::string output = directory_ + "/output";
  pid_ = fork();
  if (pid_ == 0) {
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(fd, STDERR_FILENO);
    dup2(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
    setenv("NOTIFY_SOCKET", notify_path.c_str(), 1);
    if (uid != 0 && (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0)) _exit(99);
    execv(argv[0], argv.data());
    _exit(98);
  }
  process_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

DaemonProcess::~DaemonProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string DaemonProcess::NextNotification() {
  pollfd fds[] = {{notify_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}};
  if (poll(fds, 2, kPatienceMs) <= 0 || (fds[0].revents & POLLIN) == 0) return "";
  char text[1024];
  const ssize_t n = recv(notify_.get(), text, sizeof text, 0);
  return n <= 0 ? "" : std::string(text, static_cast<size_t>(n));
}

bool DaemonProcess::WaitReady() {
  for (std::string said; !(said = NextNotification()).empty();) {
    if (said.starts_with("READY=1\n")) return true;
  }
  return false;
}

void DaemonProcess::Signal(int signal) const { kill(pid_, signal); }

int DaemonProcess::WaitExit() {
  pollfd fd = {process_.get(), POLLIN, 0};
  if (poll(&fd, 1, kPatienceMs) <= 0) return -1;
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string DaemonProcess::Log() const { return Read(log_.c_str()); }

bool DaemonProcess::Logs(const std::string& text) const {
  constexpr int kLookEveryMs = 5;
  for (int waited = 0; waited < kPatienceMs; waited += kLookEveryMs) {
    if (Log().find(text) != std::string::npos) return true;
    pollfd ended = {process_.get(), POLLIN, 0};
    if (poll(&ended, 1, kLookEveryMs) != 0) break;
  }
  return Log().find(text) != std::string::npos;
}

std::string DaemonProcess::Output() const { return Read("output"); }

std::string DaemonProcess::Read(const char* name) const {
  std::ifstream stream(directory_ + "/" + name);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace rocegw::testing
