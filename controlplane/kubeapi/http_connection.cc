// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/http_connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace rocegw::kubeapi {
namespace {

constexpr std::chrono::milliseconds kGlance(100);

struct FreeAddresses {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

}  // namespace

Status Patience::Await(int fd, short events) const {
  for (;;) {
    if (stop_) return {ECANCELED, "stopped"};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {ETIMEDOUT, "no answer in time"};
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min(left, kGlance).count()));
    if (ready > 0) return OkStatus();
    if (ready < 0 && errno != EINTR) return {errno, std::strerror(errno)};
  }
}

StatusOr<UniqueFd> ConnectTo(const std::string& host, const std::string& port,
                             const Patience& patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return Status(EHOSTUNREACH, host + ": " + gai_strerror(error));
  const Addresses addresses(found);
  Status last(EHOSTUNREACH, host + ": no address");
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    UniqueFd fd(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) return Status(errno, std::strerror(errno));
    if (::connect(fd.get(), at->ai_addr, at->ai_addrlen) != 0 && errno != EINPROGRESS) {
      last = Status(errno, std::strerror(errno));
      continue;
    }
    if (Status ready = patience.Await(fd.get(), POLLOUT); !ready.ok()) return ready;
    int outcome = 0;
    socklen_t size = sizeof outcome;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &outcome, &size);
    if (outcome == 0) return fd;
    last = Status(outcome, std::strerror(outcome));
  }
  return last;
}

StatusOr<HttpResponse> Exchange(const std::string& request, const WriteSome& write,
                                const ReadSome& read) {
  for (size_t sent = 0; sent < request.size();) {
    const auto wrote = write(request.data() + sent, request.size() - sent);
    if (!wrote.ok()) return wrote.status();
    if (wrote.value() == 0) return Status(EPIPE, "the server closed the connection");
    sent += wrote.value();
  }
  std::string response;
  char part[16384];
  for (;;) {
    const auto got = read(part, sizeof part);
    if (!got.ok()) return got.status();
    if (got.value() == 0) return ParseHttpResponse(response);
    response.append(part, got.value());
    if (response.size() > kLargestResponse)
      return Status(EMSGSIZE, "the server's answer is larger than 16 MiB");
  }
}

std::string HeadOf(const std::string& host, const std::string& port, const HttpRequest& request,
                   const std::string& token) {
  const bool v6 = host.find(':') != std::string::npos;
  std::string head = request.method + " " + request.path +
                     " HTTP/1.1\r\nHost: " + (v6 ? "[" + host + "]" : host) + ":" + port +
                     "\r\nUser-Agent: rocegw\r\nAccept: application/json\r\nConnection: close\r\n";
  if (!token.empty()) head += "Authorization: Bearer " + token + "\r\n";
  if (!request.content_type.empty()) head += "Content-Type: " + request.content_type + "\r\n";
  head += "Content-Length: " + std::to_string(request.body.size()) + "\r\n\r\n";
  return head;
}

}  // namespace rocegw::kubeapi
