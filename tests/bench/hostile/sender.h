// SPDX-License-Identifier: Apache-2.0
// Sender of RoCEv2 datagrams from one IPv4 address to a gateway. One thread per object.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/wire/codec.h"
#include "gateway/wire/mad.h"

namespace rocegw::bench {

using Bytes = std::vector<uint8_t>;

class Sender {
 public:
  // Sends from `own`. An address that this host has gets a UDP socket; any other one is forged with
  // a raw socket, which needs CAP_NET_RAW. Ends the program when neither works.
  Sender(const char* own, const char* gateway, uint16_t port = wire::kRocePort);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender();

  const wire::Path& path() const { return path_; }
  // Changes the forged address; does nothing with a UDP socket.
  void Forge(uint32_t address);

  void Send(wire::Headers headers, const Bytes& body);
  void SendRaw(const Bytes& bytes);
  void SendMad(const wire::MadBytes& mad);

 private:
  int socket_;
  bool forges_ = false;
  uint16_t port_;  // of the gateway
  wire::Path path_;
};

}  // namespace rocegw::bench
