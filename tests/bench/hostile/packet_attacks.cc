// SPDX-License-Identifier: Apache-2.0
// Attacks by UDP datagrams to the RoCEv2 port.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/wire/mad.h"
#include "tests/bench/hostile/attach.h"
#include "tests/bench/hostile/sender.h"

namespace rocegw::bench {
namespace {

// Random bytes of random length, half of them behind a header that decodes.
void Malformed(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  std::minstd_rand random(1);
  for (;;) {
    Bytes bytes(random() % 512);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    wire::Headers headers;
    headers.bth.opcode = static_cast<wire::Opcode>(random());
    headers.bth.dest_qpn = Qpn{static_cast<uint32_t>(random()) & 0xFFFFFF};
    if (random() % 2 == 0) {
      sender.SendRaw(bytes);
    } else {
      headers.bth.opcode = wire::Opcode::kRcSendOnly;
      sender.Send(headers, bytes);
    }
  }
}

// Frames for channels that the sender guesses: every number, every epoch.
void ChannelGuesses(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  for (uint32_t guess = 0;; ++guess) {
    wire::ChannelControl control;
    control.kind = wire::ControlKind::kReset;
    control.reason = static_cast<wire::ChannelReason>(1);
    control.channel = guess & 0xFFFFFF;
    control.peer_epoch = guess >> 4;
    Bytes body(wire::kChannelControlLength);
    wire::EncodeControl(control, body.data());
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    headers.bth.dest_qpn = Qpn{guess & 0xFFFFFF};
    sender.Send(headers, body);
  }
}

wire::MadBytes Question(uint64_t transaction_id) {
  wire::GatewayMad mad;
  mad.transaction_id = transaction_id;
  mad.info.instance = 0x5EED;
  mad.info.features = wire::kOptionPresent;
  wire::MadBytes bytes;
  wire::EncodeGatewayMad(mad, wire::kDefaultVendorId, bytes);
  return bytes;
}

// Socket that gets what the gateway sends to this address; waits for at most 0.1 s.
int Receiver(const char* own) {
  const int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(wire::kRocePort);
  const timeval patience{0, 100000};
  setsockopt(receiver, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (inet_pton(AF_INET, own, &at.sin_addr) != 1 ||
      bind(receiver, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) {
    std::perror("hostile: port 4791");
    std::exit(1);
  }
  return receiver;
}

// What the gateway says about itself.
wire::GatewayInfo Ask(Sender& sender, int receiver) {
  constexpr size_t kMadAt = wire::kBthLength + 8;  // behind the DETH
  for (uint64_t number = 1;; ++number) {
    sender.SendMad(Question(number));
    Bytes answer(4096);
    const ssize_t length = recv(receiver, answer.data(), answer.size(), 0);
    if (length < static_cast<ssize_t>(kMadAt + wire::kMadLength)) continue;
    wire::GatewayMad mad;
    if (wire::DecodeGatewayMad({answer.data() + kMadAt, wire::kMadLength}, wire::kDefaultVendorId,
                               mad) == metrics::DropReason::kNone &&
        mad.response) {
      return mad.info;
    }
  }
}

// The opening with that number, which a gateway with these properties accepts.
wire::ChannelControl OpeningOf(const wire::GatewayInfo& info, uint32_t number) {
  wire::ChannelControl control;
  control.channel = 0x100 + (number & 0xFFFF);
  control.epoch = number;
  control.instance = 0x5EED;
  control.initial_psn = Psn(number & 0xFFFFFF);
  control.window = 64;
  control.features = info.features;
  control.worker = static_cast<uint16_t>(number % wire::kMostGatewayWorkers);
  control.traffic_class = static_cast<uint8_t>(number / wire::kMostGatewayWorkers * 4);
  return control;
}

void SendControl(Sender& sender, const wire::ChannelControl& control, Qpn to) {
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelControl;
  headers.bth.dest_qpn = to;
  Bytes body(wire::kChannelControlLength);
  wire::EncodeControl(control, body.data());
  sender.Send(headers, body);
}

// Opens channels at the acceptor that the gateway names, with cookies where it wants them, and
// probes each that the gateway opens.
void ChannelOpens(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  const int receiver = Receiver(arguments[0]);
  const wire::GatewayInfo info = Ask(sender, receiver);
  for (uint32_t number = 1;; ++number) {
    SendControl(sender, OpeningOf(info, number), info.acceptors[0]);
    Bytes answer(512);
    const ssize_t length = recv(receiver, answer.data(), answer.size(), MSG_DONTWAIT);
    wire::ChannelControl opened;
    if (length < static_cast<ssize_t>(wire::kBthLength + wire::kChannelControlLength) ||
        wire::DecodeControl({answer.data() + wire::kBthLength, wire::kChannelControlLength},
                            opened) != metrics::DropReason::kNone) {
      continue;
    }
    if (opened.kind == wire::ControlKind::kRetry) {
      wire::ChannelControl again = OpeningOf(info, opened.peer_epoch);
      again.peer_epoch = opened.epoch;
      SendControl(sender, again, info.acceptors[0]);
    }
    if (opened.kind != wire::ControlKind::kOpened) continue;
    wire::ChannelControl probe;
    probe.kind = wire::ControlKind::kProbe;
    probe.probe = 1;
    probe.channel = 0x100;
    probe.epoch = opened.peer_epoch;
    probe.peer_epoch = opened.epoch;
    probe.instance = 0x5EED;
    SendControl(sender, probe, Qpn{opened.channel});
  }
}

// The address from which the host sends to another one.
std::string OwnAddressTowards(const char* other) {
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(wire::kRocePort);
  socklen_t length = sizeof at;
  char text[INET_ADDRSTRLEN] = "";
  if (inet_pton(AF_INET, other, &at.sin_addr) != 1 ||
      connect(probe, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      getsockname(probe, reinterpret_cast<sockaddr*>(&at), &length) != 0 ||
      inet_ntop(AF_INET, &at.sin_addr, text, sizeof text) == nullptr) {
    std::perror("hostile: own address");
    std::exit(1);
  }
  close(probe);
  return text;
}

// Opens channels from the victim's address and from 65,536 others, whose answers it does not see.
void ForgedChannelOpens(int, char** arguments) {
  const std::string own = OwnAddressTowards(arguments[1]);
  Sender honest(own.c_str(), arguments[1]);
  const wire::GatewayInfo info = Ask(honest, Receiver(own.c_str()));
  Sender sender(arguments[0], arguments[1]);
  in_addr victim{};
  inet_pton(AF_INET, arguments[0], &victim);
  for (uint32_t number = 1;; ++number) {
    sender.Forge(number % 2 == 0 ? ntohl(victim.s_addr) : 0x0A4E0000 + (number / 2 & 0xFFFF));
    SendControl(sender, OpeningOf(info, number), info.acceptors[0]);
  }
}

void DiscoveryFlood(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  for (uint64_t number = 1;; ++number) sender.SendMad(Question(number));
}

// Questions from 65,536 forged addresses in turn.
void DiscoveryFromEverywhere(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  for (uint64_t number = 1;; ++number) {
    sender.Forge(0x0A4E0000 | static_cast<uint32_t>(number & 0xFFFF));
    sender.SendMad(Question(number));
  }
}

// Connection requests: each from a queue pair number of its own, so that stale connections of all
// numbers are swept, for a service that nobody offers or a port that the victim may have.
void ConnectionRequests(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  wire::CmReq request;
  request.primary.local_gid = sender.path().source;
  request.primary.remote_gid = sender.path().destination;
  request.primary.hop_limit = 64;
  request.local_ca_guid = 0x5EED;
  request.path_mtu = 3;
  request.local_response_timeout = request.remote_response_timeout = 20;
  wire::EncodeIpCm({4, 4000, sender.path().source, sender.path().destination},
                   std::span<uint8_t, wire::kIpCmHeaderLength>(request.private_data.data(),
                                                               wire::kIpCmHeaderLength));
  for (uint32_t number = 2;; ++number) {
    request.local_comm_id = number;
    request.local_qpn = Qpn{number & 0xFFFFFF};
    request.service_id = wire::IpServiceId(0x0106, static_cast<uint16_t>(number));
    wire::MadBytes bytes;
    wire::EncodeMad({.transaction_id = number, .body = request}, bytes);
    sender.SendMad(bytes);
  }
}

void CongestionNotices(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  for (uint32_t number = 2;; ++number) {
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kCnp;
    headers.bth.dest_qpn = Qpn{(number * 0x40001) & 0xFFFFFF};
    sender.Send(headers, Bytes(16));
  }
}

// Datagrams to guessed queue pairs.
void Datagrams(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  for (uint32_t number = 2;; ++number) {
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kUdSendOnly;
    headers.bth.dest_qpn = Qpn{(number * 0x40001) & 0xFFFFFF};
    headers.deth = {0x11111111, Qpn{number & 0xFFFFFF}};
    sender.Send(headers, Bytes(512, 0x33));
  }
}

// Binds every port that a gateway sends from, and the name of its lock against a second gateway.
void SourcePorts(int, char**) {
  constexpr unsigned kFirst = 0xC000, kPorts = 0x4000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "rocegw-udp-4791";
  text.copy(name.sun_path + 1, text.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const int lock = socket(AF_UNIX, SOCK_STREAM, 0);
  std::vector<bool> taken(kPorts);
  bool named = false;
  for (;; usleep(20000)) {
    for (unsigned i = 0; i < kPorts; ++i) {
      if (taken[i]) continue;
      const int holder = socket(AF_INET6, SOCK_DGRAM, 0);
      sockaddr_in6 any{};
      any.sin6_family = AF_INET6;
      any.sin6_port = htons(static_cast<uint16_t>(kFirst + i));
      taken[i] = bind(holder, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
      if (!taken[i]) close(holder);
    }
    named = named || bind(lock, reinterpret_cast<sockaddr*>(&name), length) == 0;
  }
}

// Not an attack: the same load of packets for the machine, to a port that nobody has open.
void FloodElsewhere(int, char** arguments) {
  Sender sender(arguments[0], arguments[1], wire::kRocePort + 1);
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  for (;;) sender.Send(headers, Bytes(64, 0x33));
}

constexpr Attack kAttacks[] = {
    {"flood_elsewhere", FloodElsewhere},
    {"malformed_packets", Malformed},
    {"channel_guesses", ChannelGuesses},
    {"channel_opens", ChannelOpens},
    {"forged_channel_opens", ForgedChannelOpens},
    {"discovery_flood", DiscoveryFlood},
    {"discovery_from_everywhere", DiscoveryFromEverywhere},
    {"connection_requests", ConnectionRequests},
    {"congestion_notices", CongestionNotices},
    {"datagrams", Datagrams},
    {"source_ports", SourcePorts},
};

}  // namespace

constinit const std::span<const Attack> kPacketAttacks(kAttacks);

}  // namespace rocegw::bench
