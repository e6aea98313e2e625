// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/http_call.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace rocegw::kubeapi {
namespace {

bool IsPort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

bool IsHostByte(unsigned char byte) {
  return std::isalnum(byte) != 0 || byte == '.' || byte == '-' || byte == ':';
}

// Returns the bytes that one call of send or recv moved, 0 at the end of the stream.
template <typename Step>
StatusOr<size_t> MoveBytes(int fd, short events, const Patience& patience, const Step& step) {
  for (;;) {
    const ssize_t moved = step();
    if (moved >= 0) return static_cast<size_t>(moved);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Status(errno, std::strerror(errno));
    if (Status ready = patience.Await(fd, events); !ready.ok()) return ready;
  }
}

StatusOr<HttpResponse> CallPlain(const HttpUrl& url, const HttpRequest& request,
                                 const std::string& token, const Patience& patience) {
  auto connected = ConnectTo(url.host, url.port, patience);
  if (!connected.ok()) return connected.status();
  const int fd = connected->get();
  return Exchange(
      HeadOf(url.host, url.port, request, token) + request.body,
      [&](const char* bytes, size_t size) {
        return MoveBytes(fd, POLLOUT, patience,
                         [&] { return ::send(fd, bytes, size, MSG_NOSIGNAL); });
      },
      [&](char* bytes, size_t size) {
        return MoveBytes(fd, POLLIN, patience, [&] { return ::recv(fd, bytes, size, 0); });
      });
}

}  // namespace

HttpUrl ReadHttpUrl(std::string_view text, std::string& problem) {
  problem.clear();
  HttpUrl url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) {
    problem = "it begins neither with http:// nor with https://";
    return {};
  }
  text.remove_prefix(url.tls ? 8 : 7);
  const size_t slash = std::min(text.find('/'), text.size());
  url.path = text.substr(slash);
  std::string_view host = text.substr(0, slash);
  url.port = url.tls ? "443" : "80";
  const size_t bracket = host.find(']');
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    url.port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  url.host = host;
  const auto visible = [](unsigned char byte) {
    return byte > ' ' && byte < 127 && byte != '?' && byte != '#';
  };
  if (host.empty() || !std::ranges::all_of(host, IsHostByte) || !IsPort(url.port)) {
    problem = "its host or port is not one";
  } else if (!std::ranges::all_of(url.path, visible)) {
    problem = "its path has a query, a fragment, or bytes that are not visible ASCII";
  }
  return problem.empty() ? url : HttpUrl();
}

StatusOr<HttpResponse> CallUrl(const HttpUrl& url, const HttpRequest& request,
                               const std::string& token, std::chrono::milliseconds time_limit,
                               const std::atomic<bool>& stop) {
  if (!url.tls) return CallPlain(url, request, token, Patience(time_limit, stop));
  return CallHttps({.host = url.host, .port = url.port, .ca_file = url.ca_file}, request, token,
                   time_limit, stop);
}

}  // namespace rocegw::kubeapi
