// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/received_bytes.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace rocegw::server {

uint64_t ReceivedBytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

uint64_t ReadBytes(int fd) {
  int unread = 0;
  ioctl(fd, FIONREAD, &unread);
  // Bytes that arrive between the two calls count as read.
  const uint64_t received = ReceivedBytes(fd);
  return received - std::min(received, static_cast<uint64_t>(unread));
}

void SetReceiveBuffer(int fd, int bytes) {
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void SetLowWater(int fd, int bytes) {
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

}  // namespace rocegw::server
