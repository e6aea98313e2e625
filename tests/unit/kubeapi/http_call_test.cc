// SPDX-License-Identifier: Apache-2.0
// URLs, and plain HTTP calls to a server that answers, stays silent, or says too much.
#include "controlplane/kubeapi/http_call.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace rocegw::kubeapi {
namespace {

std::string PartsOf(const std::string& text) {
  std::string problem;
  const HttpUrl url = ReadHttpUrl(text, problem);
  if (!problem.empty()) return problem;
  return std::string(url.tls ? "tls " : "") + url.host + " " + url.port + " " + url.path;
}

TEST(HttpUrl, PartsAreRead) {
  EXPECT_EQ(PartsOf("http://prometheus"), "prometheus 80 ");
  EXPECT_EQ(PartsOf("http://192.0.2.1:9090/"), "192.0.2.1 9090 /");
  EXPECT_EQ(PartsOf("https://a.example/prom/x"), "tls a.example 443 /prom/x");
  EXPECT_EQ(PartsOf("http://[2001:db8::1]:9090"), "2001:db8::1 9090 ");
  EXPECT_EQ(PartsOf("https://[2001:db8::1]"), "tls 2001:db8::1 443 ");
}

TEST(HttpUrl, OtherTextsAreRefused) {
  EXPECT_NE(PartsOf("prometheus:9090").find("begins neither"), std::string::npos);
  for (const char* text : {"http://", "http://a:0", "http://a:99999", "http://a:b", "http://u@a",
                           "http://a b", "http://a\r\nb"})
    EXPECT_EQ(PartsOf(text), "its host or port is not one") << text;
  for (const char* text : {"http://a/?x=1", "http://a/#x", "http://a/b c", "http://a/\r\nX: y"})
    EXPECT_NE(PartsOf(text).find("its path"), std::string::npos) << text;
}

// Listens on a port of this host and serves one connection.
class OneConnection {
 public:
  // An empty answer: the server reads and says nothing until the client leaves.
  explicit OneConnection(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, answer = std::move(answer)] { Serve(answer); });
  }
  ~OneConnection() {
    thread_.join();
    ::close(listener_);
  }

  HttpUrl url() const {
    return {.tls = false, .host = "127.0.0.1", .port = port_, .path = {}, .ca_file = {}};
  }
  const std::string& request() {
    thread_.join();
    thread_ = std::thread([] {});
    return request_;
  }

 private:
  void Serve(const std::string& answer) {
    const int connection = ::accept(listener_, nullptr, nullptr);
    char part[4096];
    while (request_.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(connection, part, sizeof part, 0);
      if (got <= 0) break;
      request_.append(part, static_cast<size_t>(got));
    }
    if (answer.empty()) {
      (void)::recv(connection, part, sizeof part, 0);
    } else {
      for (size_t at = 0; at < answer.size();) {
        const ssize_t sent =
            ::send(connection, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
        if (sent <= 0) break;
        at += static_cast<size_t>(sent);
      }
    }
    ::close(connection);
  }

  int listener_;
  std::string port_;
  std::string request_;
  std::thread thread_;
};

StatusOr<HttpResponse> Get(const HttpUrl& url, std::chrono::milliseconds limit,
                           bool stopped = false) {
  const std::atomic<bool> stop(stopped);
  return CallUrl(url, {.method = "GET", .path = "/x", .content_type = {}, .body = {}}, "secret",
                 limit, stop);
}

TEST(HttpCall, AnAnswerIsReadToItsEnd) {
  OneConnection server("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  auto response = Get(server.url(), std::chrono::seconds(20));
  ASSERT_TRUE(response.ok()) << response.status().text();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hello");
  EXPECT_TRUE(server.request().starts_with("GET /x HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_NE(server.request().find("Authorization: Bearer secret\r\n"), std::string::npos);
}

TEST(HttpCall, ASilentServerIsLeftAtTheTimeLimit) {
  OneConnection server("");
  EXPECT_EQ(Get(server.url(), std::chrono::milliseconds(200)).status().error(), ETIMEDOUT);
}

TEST(HttpCall, AStoppedCallEnds) {
  OneConnection server("");
  EXPECT_EQ(Get(server.url(), std::chrono::seconds(60), true).status().error(), ECANCELED);
}

TEST(HttpCall, ATooLargeAnswerIsAnError) {
  OneConnection server("HTTP/1.1 200 OK\r\n\r\n" + std::string(kLargestResponse + 1, 'x'));
  EXPECT_EQ(Get(server.url(), std::chrono::seconds(20)).status().error(), EMSGSIZE);
}

}  // namespace
}  // namespace rocegw::kubeapi
