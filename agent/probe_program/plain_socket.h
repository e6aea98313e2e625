// SPDX-License-Identifier: Apache-2.0
// Sockets of the kernel for the measurement of the network beside RDMA. Each call has a time limit.
// A call that fails throws NetworkProblem. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gateway/base/unique_fd.h"

namespace rocegw::probe {

struct NetworkProblem {
  std::string text;  // a line for people
};

// Mark of the datagrams: the DSCP that RoCE usually has, and "capable of ECN".
inline constexpr uint8_t kDscp = 26;
inline constexpr uint8_t kEcnMask = 3;
inline constexpr uint8_t kEcnCapable = 2;

class PlainSocket {
 public:
  PlainSocket() = default;

  // Bound to an address of this host and any port.
  static PlainSocket Datagrams(const std::string& address);
  static PlainSocket Listener(const std::string& address);
  // To the other host.
  static PlainSocket DatagramsTo(const std::string& address, uint16_t port);
  static PlainSocket ConnectTo(const std::string& address, uint16_t port,
                               std::chrono::milliseconds within);

  uint16_t port() const;
  // A full queue of this host drops the datagram, as the network may.
  void SendDatagram(const std::vector<uint8_t>& bytes) const;
  // Returns false if none came in time. `bytes` has the size of the datagrams; shorter and longer
  // ones are skipped. `traffic_class`: as it arrived.
  bool ReceiveDatagram(std::chrono::milliseconds within, std::vector<uint8_t>& bytes,
                       uint8_t& traffic_class) const;
  PlainSocket Accept(std::chrono::milliseconds within) const;
  // Accepts the connection that begins with the bytes of `head`, and reads them. Other connections
  // are closed, silent ones after 500 ms: a stranger ends no measurement.
  PlainSocket AcceptWithHead(const void* head, size_t length,
                             std::chrono::milliseconds within) const;
  void Write(const void* bytes, size_t length);
  void Read(void* bytes, size_t length);

 private:
  PlainSocket(UniqueFd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}

  // Returns false if the connection ends, or not all bytes come before `end`.
  bool ReadAll(std::vector<uint8_t>& bytes, std::chrono::steady_clock::time_point end) const;

  UniqueFd fd_;
  std::string peer_;  // for messages
};

}  // namespace rocegw::probe
