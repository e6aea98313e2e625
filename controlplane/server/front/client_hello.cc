// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/client_hello.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace rocegw::server {
namespace {

// RFC 8446, 5.1: type, legacy version (2), length (2).
constexpr int kRecordHeader = 5;
constexpr uint8_t kHandshake = 22;
constexpr uint8_t kMajorVersion = 3;

}  // namespace

HelloState LookAtHello(int fd) {
  std::array<uint8_t, kRecordHeader> header{};
  const ssize_t length = recv(fd, header.data(), header.size(), MSG_PEEK | MSG_DONTWAIT);
  if (length > 0 && header[0] != kHandshake) return HelloState::kNoTls;
  if (length > 1 && header[1] != kMajorVersion) return HelloState::kNoTls;
  if (length < kRecordHeader) return HelloState::kIncomplete;
  int arrived = 0;
  if (ioctl(fd, FIONREAD, &arrived) != 0) return HelloState::kIncomplete;
  const int record = kRecordHeader + (header[3] << 8 | header[4]);
  return arrived >= std::min(record, kMostHelloBytes) ? HelloState::kComplete
                                                      : HelloState::kIncomplete;
}

}  // namespace rocegw::server
