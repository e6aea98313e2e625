// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/hostile/sender.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gateway/wire/crc/icrc.h"

namespace rocegw::bench {
namespace {

// Not 0, which the kernel would replace.
constexpr uint16_t kForgedIpId = 1;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "hostile: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

}  // namespace

Sender::Sender(const char* own, const char* gateway, uint16_t port) : port_(port) {
  socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  in_addr to{};
  if (inet_pton(AF_INET, own, &at.sin_addr) != 1 || inet_pton(AF_INET, gateway, &to) != 1)
    Fail("address");
  if (bind(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) {
    if (errno != EADDRNOTAVAIL) Fail("bind");
    close(socket_);
    socket_ = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    if (socket_ < 0) Fail("raw socket");
    forges_ = true;
    at.sin_port = htons(0xC123);
  } else {
    // The ICRC covers the DF bit, which receivers expect to be set.
    const int discover = IP_PMTUDISC_DO;
    setsockopt(socket_, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    socklen_t length = sizeof at;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &length);
  }
  path_.source = wire::Gid::FromV4(ntohl(at.sin_addr.s_addr));
  path_.destination = wire::Gid::FromV4(ntohl(to.s_addr));
  path_.source_port = ntohs(at.sin_port);
  at.sin_addr = to;
  at.sin_port = htons(port);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) Fail("connect");
}

Sender::~Sender() { close(socket_); }

void Sender::Forge(uint32_t address) {
  if (forges_) path_.source = wire::Gid::FromV4(address);
}

void Sender::Send(wire::Headers headers, const Bytes& body) {
  headers.bth.pad_count = static_cast<uint8_t>(-body.size() & 3);
  Bytes bytes(wire::HeaderLength(headers.bth.opcode));
  wire::EncodeHeaders(headers, bytes.data());
  bytes.insert(bytes.end(), body.begin(), body.end());
  bytes.resize(bytes.size() + headers.bth.pad_count + wire::kIcrcLength);
  wire::SealIcrc(path_, forges_ ? kForgedIpId : uint16_t{0}, bytes.data(),
                 bytes.size() - wire::kIcrcLength);
  SendRaw(bytes);
}

void Sender::SendRaw(const Bytes& bytes) {
  if (!forges_) {
    (void)!send(socket_, bytes.data(), bytes.size(), 0);
    return;
  }
  ip header{};
  header.ip_v = 4;
  header.ip_hl = 5;
  header.ip_id = htons(kForgedIpId);
  header.ip_off = htons(IP_DF);
  header.ip_ttl = 64;
  header.ip_p = IPPROTO_UDP;
  header.ip_src.s_addr = htonl(path_.source.V4());
  header.ip_dst.s_addr = htonl(path_.destination.V4());
  udphdr udp{};
  udp.uh_sport = htons(path_.source_port);
  udp.uh_dport = htons(port_);
  udp.uh_ulen = htons(static_cast<uint16_t>(sizeof udp + bytes.size()));
  Bytes datagram(sizeof header + sizeof udp);
  header.ip_len = htons(static_cast<uint16_t>(datagram.size() + bytes.size()));
  std::memcpy(datagram.data(), &header, sizeof header);
  std::memcpy(datagram.data() + sizeof header, &udp, sizeof udp);
  datagram.insert(datagram.end(), bytes.begin(), bytes.end());
  (void)!send(socket_, datagram.data(), datagram.size(), 0);
}

void Sender::SendMad(const wire::MadBytes& mad) {
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kUdSendOnly;
  headers.bth.dest_qpn = Qpn{1};
  headers.deth = {wire::kGsiQkey, Qpn{1}};
  Send(headers, {mad.begin(), mad.end()});
}

}  // namespace rocegw::bench
