// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/stop_while_opening.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>

#include "gateway/far/fleet/ask_agent.h"
#include "gateway/process/startup.h"

namespace rocegw::far {
namespace {

bool IsReadable(int fd, int milliseconds) {
  pollfd ready{fd, POLLIN, 0};
  return poll(&ready, 1, milliseconds) > 0;
}

TEST(StopWhileOpening, ASignalToStopIsSeen_OthersAreNot) {
  auto signals = process::BlockSignals();
  ASSERT_TRUE(signals.ok());
  {
    const StopWhileOpening stop(signals->get());
    kill(getpid(), SIGHUP);
    EXPECT_FALSE(IsReadable(stop.fd(), 100));
    EXPECT_FALSE(stop.stopped());
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(IsReadable(stop.fd(), 10000));
    EXPECT_TRUE(stop.stopped());
  }
  // Later signals are for others.
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(IsReadable(signals->get(), 10000));
}

TEST(StopWhileOpening, AQuestionToAnAgentThatDoesNotAnswerEnds) {
  auto signals = process::BlockSignals();
  ASSERT_TRUE(signals.ok());
  char folder[] = "/tmp/rocegw-stop-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/" + kAgentSocket;
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  const StopWhileOpening stop(signals->get());
  kill(getpid(), SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = AskAgent(folder, {}, std::chrono::seconds(60), stop.fd());
  EXPECT_EQ(answer.status().error(), ECANCELED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  unlink(path.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace rocegw::far
