// SPDX-License-Identifier: Apache-2.0
// The daemon is killed while a thread of the program waits for an answer in a ring: the daemon
// wakes no thread any more, and the thread learns of the end by itself. The daemon is a process of
// its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/session/running_session.h"

namespace rocegw::testing {
namespace {

// More requests than the library makes before it asks for rings.
constexpr int kRequestsUntilRings = 100;

// Session server in a process of its own. Made before the test has threads.
class DaemonProcess {
 public:
  DaemonProcess() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    const UniqueFd told(ends[0]);
    UniqueFd tells(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) Serve(tells.get());
    tells.Reset();
    char path[108] = {};
    if (::read(told.get(), path, sizeof path - 1) > 0) path_ = path;
  }
  ~DaemonProcess() {
    Kill();
    ::unlink(path_.c_str());
  }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  const std::string& path() const { return path_; }
  // Halts the daemon; returns when none of its threads runs.
  void Halt() const {
    int status = 0;
    ::kill(pid_, SIGSTOP);
    ASSERT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  [[noreturn]] static void Serve(int tells) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    SessionHost host(1);
    const RunningSession running(host);
    if (::write(tells, running.path().data(), running.path().size()) < 0) ::_exit(1);
    while (true) ::pause();
  }

  pid_t pid_ = -1;
  std::string path_;
};

// Returns true if the thread waits for a futex, as threads that wait for answers in a ring do. One
// that waits at the socket is in another call.
bool WaitsInRing(pid_t thread) {
  const std::string name = "/proc/self/task/" + std::to_string(thread) + "/syscall";
  const UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32] = {};
  if (::read(file.get(), text, sizeof text - 1) <= 0) return false;
  return std::atol(text) == SYS_futex && text[0] != 'r';
}

TEST(KilledDaemon, ThreadWaitsForAnAnswerInARing_GetsAnError) {
  auto daemon = std::make_unique<DaemonProcess>();
  ASSERT_FALSE(daemon->path().empty());
  setenv("ROCEGW_SOCKET", daemon->path().c_str(), 1);
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_NE(count, 0);
  ibv_context* const context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  ASSERT_NE(context, nullptr);
  for (int i = 0; i < kRequestsUntilRings; ++i) {
    ibv_pd* const pd = ibv_alloc_pd(context);
    ASSERT_NE(pd, nullptr);
    ASSERT_EQ(ibv_dealloc_pd(pd), 0);
  }
  daemon->Halt();
  std::atomic<pid_t> thread{0};
  ibv_pd* pd = nullptr;
  int error = 0;
  std::thread caller([&] {
    thread = static_cast<pid_t>(::syscall(SYS_gettid));
    pd = ibv_alloc_pd(context);
    error = errno;
  });
  while (thread == 0 || !WaitsInRing(thread)) ::sched_yield();
  daemon->Kill();
  caller.join();
  EXPECT_EQ(pd, nullptr);
  EXPECT_EQ(error, EIO);
  EXPECT_EQ(ibv_alloc_pd(context), nullptr) << "all later requests fail at once";
  EXPECT_EQ(ibv_close_device(context), 0);
  unsetenv("ROCEGW_SOCKET");
}

}  // namespace
}  // namespace rocegw::testing
