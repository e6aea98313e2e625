// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/status.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "gateway/base/unique_fd.h"
#include "gateway/process/exit_code.h"

namespace rocegw::far {
namespace {

constexpr const char* kPrefix = "rocegw_memory_";
constexpr size_t kMostPageBytes = 1 << 20;
constexpr timeval kTimeout{5, 0};

std::string Size(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    unit++;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

// The answer to GET /metrics; empty, and errno or a line on stderr, when there is none.
std::string Fetch(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    std::cerr << "rocegw-memory: " << host << ": " << gai_strerror(error) << "\n";
    return {};
  }
  const UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof kTimeout);
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout);
  const bool connected = connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  const std::string request =
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  std::string page;
  if (!connected || send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    std::cerr << "rocegw-memory: nothing answers at " << host << ":" << port << ": "
              << std::strerror(errno) << " (rocegw-memory donate --metrics)\n";
    return {};
  }
  std::array<char, 16384> buffer;
  ssize_t got = 0;
  while (page.size() < kMostPageBytes &&
         (got = recv(socket.get(), buffer.data(), buffer.size(), 0)) > 0) {
    page.append(buffer.data(), static_cast<size_t>(got));
  }
  return page;
}

}  // namespace

std::string StatusLines(const std::string& page) {
  std::istringstream lines(page);
  std::ostringstream out;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.rfind(kPrefix, 0) != 0) continue;
    const size_t space = line.rfind(' ');
    std::string name = line.substr(std::strlen(kPrefix), space - std::strlen(kPrefix));
    const double value = std::strtod(line.c_str() + space, nullptr);
    std::string shown = std::to_string(static_cast<long long>(value));
    if (const size_t bytes = name.find("_bytes"); bytes != std::string::npos) {
      name.erase(bytes, std::strlen("_bytes"));
      shown = Size(value);
    }
    if (name.size() > 6 && name.compare(name.size() - 6, 6, "_total") == 0) {
      name.resize(name.size() - 6);
    }
    name.resize(std::max<size_t>(name.size(), 40), ' ');
    out << name << " " << shown << "\n";
  }
  return out.str();
}

int ShowStatus(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    std::cerr << "rocegw-memory: --metrics is ADDRESS:PORT\n";
    return process::kUsage;
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  const std::string page = Fetch(host, address.substr(colon + 1));
  if (page.empty()) return process::kEnvironment;
  std::cout << StatusLines(page);
  return process::kOk;
}

}  // namespace rocegw::far
