// SPDX-License-Identifier: Apache-2.0
// Liveness while strangers occupy the metrics page. Runs under ThreadSanitizer too.
#include "gateway/process/http/metrics_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/unique_fd.h"

namespace rocegw::process {
namespace {

// Source that may be slow.
class SlowSource final : public MetricsSource {
 public:
  ~SlowSource() override { LetGo(); }
  std::vector<prometheus::MetricFamily> Collect() const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_; });
    ++collected_;
    prometheus::MetricFamily family;
    family.name = "filler";
    family.help = std::string(page_bytes, 'x');
    return {family};
  }
  bool Alive() const override { return alive.load(); }
  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void LetGo() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  int collected() const {
    const std::lock_guard lock(mutex_);
    return collected_;
  }
  std::atomic<bool> alive{true};
  size_t page_bytes = 10;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int collected_ = 0;
  bool held_ = false;
};

class MetricsServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    readiness_.SetReady();
    const Status status = server_.Start("127.0.0.1:0");
    ASSERT_TRUE(status.ok()) << status.text();
  }
  void TearDown() override { source_.LetGo(); }
  UniqueFd Connect() const {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(server_.port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }
  UniqueFd Ask(const std::string& path) const {
    UniqueFd socket = Connect();
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    return socket;
  }
  // Reads until the server closes; "" if nothing arrives for long.
  static std::string ReadAll(const UniqueFd& socket) {
    std::string text;
    char buffer[4096];
    while (true) {
      pollfd readable{socket.get(), POLLIN, 0};
      if (::poll(&readable, 1, 30000) != 1) return "";
      const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return text;
      text.append(buffer, static_cast<size_t>(got));
    }
  }
  void ExpectLive() const {
    const std::string answer = ReadAll(Ask("/livez"));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nok\n")) << answer;
  }

  SlowSource source_;
  Readiness readiness_;
  MetricsServer server_{source_, readiness_};
};

TEST_F(MetricsServerTest, SilentConnections_DelayNoProbe) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(Connect());
  ExpectLive();
  EXPECT_TRUE(ReadAll(Ask("/readyz")).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(ReadAll(Ask("/metrics")).starts_with("HTTP/1.1 200 "));
}

TEST_F(MetricsServerTest, Resting_LeavesConnectionsToTheSuccessor) {
  server_.SetAccepting(false);
  const UniqueFd waits = Ask("/readyz");
  OfferedFds offered;
  server_.Offer(offered);
  ASSERT_EQ(offered.size(), 1u);
  InheritedFds copies;
  copies.Add(offered[0].kind, offered[0].name, UniqueFd(dup(offered[0].fd)));
  MetricsServer successor(source_, readiness_);
  ASSERT_TRUE(successor.Start(offered[0].name, &copies).ok());
  EXPECT_EQ(successor.port(), server_.port());
  EXPECT_TRUE(ReadAll(waits).starts_with("HTTP/1.1 200 "));
  successor.Stop();
  server_.SetAccepting(true);
  ExpectLive();
}

TEST_F(MetricsServerTest, HalfRequests_DelayNoProbe) {
  std::vector<UniqueFd> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(Connect());
    (void)::send(slow.back().get(), "GET /met", 8, MSG_NOSIGNAL);
  }
  ExpectLive();
}

TEST_F(MetricsServerTest, ScrapesOfASourceThatWaits_DelayNoProbe_AndShareOnePage) {
  source_.Hold();
  std::vector<UniqueFd> scrapes;
  for (int i = 0; i < 30; ++i) scrapes.push_back(Ask("/metrics"));
  ExpectLive();
  source_.LetGo();
  for (const UniqueFd& scrape : scrapes)
    EXPECT_TRUE(ReadAll(scrape).starts_with("HTTP/1.1 200 ")) << "a scrape that came first";
  EXPECT_LE(source_.collected(), 3) << "scrapes that come meanwhile share a page";
}

TEST_F(MetricsServerTest, ReadersThatDoNotRead_DelayNoProbe) {
  source_.page_bytes = 16 << 20;  // more than the sockets hold
  std::vector<UniqueFd> readers;
  for (int i = 0; i < 30; ++i) readers.push_back(Ask("/metrics"));
  ExpectLive();
}

TEST_F(MetricsServerTest, OversizeRequest_IsRefused) {
  const UniqueFd socket = Connect();
  const std::string request(9000, 'x');
  (void)::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(ReadAll(socket).starts_with("HTTP/1.1 431 "));
}

TEST_F(MetricsServerTest, OtherMethodsAndNoHttp_AreRefused) {
  UniqueFd socket = Connect();
  (void)::send(socket.get(), "POST /metrics HTTP/1.1\r\n\r\n", 26, MSG_NOSIGNAL);
  EXPECT_TRUE(ReadAll(socket).starts_with("HTTP/1.1 405 "));
  socket = Connect();
  (void)::send(socket.get(), "hello\r\n\r\n", 9, MSG_NOSIGNAL);
  EXPECT_TRUE(ReadAll(socket).starts_with("HTTP/1.1 400 "));
}

TEST(MetricsServerWatchdog, StuckThread_TurnsLivezRed_AndItIsNamed) {
  SlowSource source;
  Readiness readiness;
  Heartbeat heartbeat;
  std::atomic<bool> end{false};
  std::mutex mutex;
  std::condition_variable changed;
  std::thread stuck([&] {
    heartbeat.Begin();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return end.load(); });
  });
  Watchdog watchdog(Milliseconds(5), Milliseconds(50));
  watchdog.Watch("worker 3", heartbeat);
  watchdog.Start();
  MetricsServer server(source, readiness, &watchdog);
  ASSERT_TRUE(server.Start("[::1]:0").ok());
  while (watchdog.Stuck().empty()) std::this_thread::yield();
  UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(static_cast<uint16_t>(server.port()));
  to.sin6_addr = in6addr_loopback;
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  ASSERT_EQ(::send(socket.get(), "GET /livez HTTP/1.1\r\n\r\n", 23, MSG_NOSIGNAL), 23);
  char buffer[1024];
  const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, MSG_WAITALL);
  const std::string answer(buffer, got < 0 ? 0 : static_cast<size_t>(got));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("worker 3 has been stuck for "), std::string::npos) << answer;
  server.Stop();
  watchdog.Stop();
  {
    const std::lock_guard lock(mutex);
    end.store(true);
  }
  changed.notify_one();
  stuck.join();
}

}  // namespace
}  // namespace rocegw::process
