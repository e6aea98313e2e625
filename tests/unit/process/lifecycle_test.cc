// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/lifecycle.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gateway/process/sd_notify.h"

namespace rocegw::process {
namespace {

// Adds a part that records its steps in `log`.
void AddPart(Lifecycle& lifecycle, std::string& log, const std::string& name, int error = 0) {
  lifecycle.Add(
      name,
      [&log, name, error] {
        log += "+" + name;
        return error == 0 ? OkStatus() : Status(error, name + " cannot start");
      },
      [&log, name] { log += "-" + name; });
}

TEST(Lifecycle, StartAndStop_RunInOppositeOrder) {
  std::string log;
  Lifecycle lifecycle;
  for (const char* name : {"a", "b", "c"}) AddPart(lifecycle, log, name);
  EXPECT_TRUE(lifecycle.Start().ok());
  lifecycle.Stop();
  lifecycle.Stop();
  EXPECT_EQ(log, "+a+b+c-c-b-a");
}

TEST(Lifecycle, StartOnly_LeavesWhatHadStarted) {
  std::string log;
  {
    Lifecycle lifecycle;
    AddPart(lifecycle, log, "a");
    AddPart(lifecycle, log, "b", EPERM);
    EXPECT_EQ(lifecycle.StartOnly().error(), EPERM);
    EXPECT_EQ(log, "+a+b");
  }
  EXPECT_EQ(log, "+a+b-a");
}

TEST(Lifecycle, FailingPart_StopsWhatHadStarted) {
  std::string log;
  Lifecycle lifecycle;
  AddPart(lifecycle, log, "a");
  AddPart(lifecycle, log, "b", EPERM);
  AddPart(lifecycle, log, "c");
  const Status status = lifecycle.Start();
  EXPECT_EQ(status.error(), EPERM);
  EXPECT_EQ(status.text(), "b cannot start");
  EXPECT_EQ(log, "+a+b-a");
}

TEST(Lifecycle, Destruction_Stops) {
  std::string log;
  {
    Lifecycle lifecycle;
    AddPart(lifecycle, log, "a");
    EXPECT_TRUE(lifecycle.Start().ok());
  }
  EXPECT_EQ(log, "+a-a");
}

class NotifySocket {
 public:
  explicit NotifySocket(const std::string& abstract_name) {
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, abstract_name.data(), abstract_name.size());
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + abstract_name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  ~NotifySocket() { close(fd_); }
  std::string Read() const {
    char text[256];
    const ssize_t n = recv(fd_, text, sizeof text, MSG_DONTWAIT);
    return n < 0 ? "nothing" : std::string(text, static_cast<size_t>(n));
  }

 private:
  int fd_;
};

TEST(ServiceManager, States_AreSentAsDatagrams) {
  const std::string name = "rocegw-test-notify-" + std::to_string(getpid());
  const NotifySocket listener(name);
  setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  const ServiceManager manager = ServiceManager::FromEnvironment();
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  manager.Ready("1 port");
  EXPECT_EQ(listener.Read(), "READY=1\nSTATUS=1 port");
  manager.Reloading();
  EXPECT_TRUE(listener.Read().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  manager.Status("busy");
  EXPECT_EQ(listener.Read(), "STATUS=busy");
  manager.Stopping("bye");
  EXPECT_EQ(listener.Read(), "STOPPING=1\nSTATUS=bye");
  EXPECT_EQ(listener.Read(), "nothing");
}

TEST(ServiceManager, NobodyListening_IsHarmless) {
  ServiceManager("").Ready("x");
  ServiceManager("/nonexistent/socket").Ready("x");
  ServiceManager(std::string(500, 'x')).Ready("x");
}

}  // namespace
}  // namespace rocegw::process
