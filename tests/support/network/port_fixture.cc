// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network/port_fixture.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>

#include "gateway/base/unique_fd.h"

namespace rocegw::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);

uint8_t PayloadByte(uint32_t psn, size_t index) {
  return static_cast<uint8_t>(psn * 31 + index * 7 + (index >> 8));
}

}  // namespace

size_t WriteTestPacket(Qpn destination, uint32_t psn, size_t payload, uint8_t* out) {
  const uint8_t header[kTestHeader] = {0x04,
                                       0x40,
                                       0xFF,
                                       0xFF,
                                       0,
                                       static_cast<uint8_t>(destination.value >> 16),
                                       static_cast<uint8_t>(destination.value >> 8),
                                       static_cast<uint8_t>(destination.value),
                                       0,
                                       static_cast<uint8_t>(psn >> 16),
                                       static_cast<uint8_t>(psn >> 8),
                                       static_cast<uint8_t>(psn)};
  std::memcpy(out, header, sizeof header);
  for (size_t i = 0; i < payload; ++i) out[kTestHeader + i] = PayloadByte(psn, i);
  return kTestHeader + payload;
}

uint32_t PsnOf(std::span<const uint8_t> datagram) {
  if (datagram.size() < kTestHeader) return UINT32_MAX;
  return static_cast<uint32_t>(datagram[9]) << 16 | static_cast<uint32_t>(datagram[10]) << 8 |
         datagram[11];
}

bool IsTestPacket(std::span<const uint8_t> datagram) {
  if (datagram.size() < kTestHeader + 4) return false;
  const uint32_t psn = PsnOf(datagram);
  for (size_t i = 0; kTestHeader + i + 4 < datagram.size(); ++i) {
    if (datagram[kTestHeader + i] != PayloadByte(psn, i)) return false;
  }
  return true;
}

bool SendTestPacket(port::PacketPort& port, const wire::Path& path, Qpn destination, uint32_t psn,
                    size_t payload) {
  port::TxPacket* packet = port.Acquire();
  if (packet == nullptr) return false;
  packet->path = path;
  packet->length = static_cast<uint32_t>(WriteTestPacket(destination, psn, payload, packet->data));
  if (port.Transmit({&packet, 1}) != 1) {
    port.Release(packet);
    return false;
  }
  return port.Flush();
}

std::vector<Received> ReceiveAll(port::PacketPort& port) {
  std::vector<Received> all;
  std::array<wire::RxDatagram, 32> burst;
  while (const size_t count = port.Receive(burst)) {
    for (size_t i = 0; i < count; ++i) {
      all.push_back({burst[i].meta, {burst[i].bytes.begin(), burst[i].bytes.end()}});
    }
  }
  return all;
}

std::vector<Received> ReceiveCount(port::PacketPort& port, size_t count) {
  std::vector<Received> all;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (all.size() < count && std::chrono::steady_clock::now() < deadline) {
    std::vector<Received> some = ReceiveAll(port);
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
    pollfd wait{port.wake_fd(), POLLIN, 0};
    if (all.size() < count && wait.fd >= 0) (void)poll(&wait, 1, 100);
  }
  return all;
}

wire::Gid TestAddress(uint8_t host, bool ipv4) {
  if (ipv4) return wire::Gid::FromV4(0x0A090000U | host);
  wire::Gid gid;
  gid.bytes = {0xFD, 0x09};
  gid.bytes[15] = host;
  return gid;
}

wire::Gid Loopback(bool ipv4) {
  if (ipv4) return wire::Gid::FromV4(INADDR_LOOPBACK);
  wire::Gid gid;
  gid.bytes[15] = 1;
  return gid;
}

uint16_t FreeUdpPort() {
  const UniqueFd probe(socket(AF_INET6, SOCK_DGRAM, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(probe.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  return ntohs(address.sin6_port);
}

wire::Path TestPath() {
  return {.source = TestAddress(1),
          .destination = TestAddress(2),
          .source_port = 0xC123,
          .traffic_class = 0x6A,
          .hop_limit = 61};
}

}  // namespace rocegw::testing
