// SPDX-License-Identifier: Apache-2.0
// Attacks by messages of the connection manager and by other management datagrams.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "gateway/wire/mad.h"
#include "tests/bench/hostile/attach.h"
#include "tests/bench/hostile/sender.h"

namespace rocegw::bench {
namespace {

constexpr uint16_t kTcpSpace = 0x0106;  // RDMA_PS_TCP
constexpr uint64_t kGuid = 0x5EED;
// First of the addresses that messages are forged from.
constexpr uint32_t kForged = 0x0A4E0000;

// A request that a listener at this port accepts, from the sender's present address.
wire::CmReq RequestFor(const Sender& sender, uint16_t port, uint32_t number) {
  wire::CmReq request;
  request.local_comm_id = number;
  request.local_qpn = Qpn{2 + number % 0xFFFFF0};
  request.local_ca_guid = kGuid;
  request.service_id = wire::IpServiceId(kTcpSpace, port);
  request.primary.local_gid = sender.path().source;
  request.primary.remote_gid = sender.path().destination;
  request.primary.hop_limit = 64;
  request.path_mtu = 3;
  request.local_response_timeout = request.remote_response_timeout = 31;
  request.max_cm_retries = 15;
  wire::EncodeIpCm({4, 4000, sender.path().source, sender.path().destination},
                   std::span<uint8_t, wire::kIpCmHeaderLength>(request.private_data.data(),
                                                               wire::kIpCmHeaderLength));
  return request;
}

void Send(Sender& sender, uint64_t transaction_id, const wire::CmBody& body) {
  wire::MadBytes bytes;
  wire::EncodeMad({.transaction_id = transaction_id, .body = body}, bytes);
  sender.SendMad(bytes);
}

// The REJ of a peer that gives up the request with this number.
wire::CmRej GivesUp(uint32_t number) {
  wire::CmRej rej;
  rej.local_comm_id = number;
  rej.answered = wire::CmAnswered::kOther;
  rej.reason = wire::RejectReason::kTimeout;
  rej.info_length = sizeof kGuid;
  for (size_t i = 0; i < sizeof kGuid; ++i)
    rej.info[i] = static_cast<uint8_t>(kGuid >> (56 - 8 * i));
  return rej;
}

// Requests connections of a listener and withdraws each, or makes it stale by another one, so that
// none waits for the listener's program.
void WithdrawnRequests(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  const auto port = static_cast<uint16_t>(std::atoi(arguments[2]));
  for (uint32_t number = 1;; ++number) {
    const wire::CmReq request = RequestFor(sender, port, number);
    Send(sender, number, request);
    if (number % 2 == 0) {
      Send(sender, number, GivesUp(number));
    } else {
      wire::CmReq stale = request;
      stale.local_comm_id = ~number;
      Send(sender, number, stale);
    }
  }
}

// A message of each kind in turn, about connections that do not exist.
wire::CmBody AnyMessage(const Sender& sender, uint32_t number) {
  wire::CmRep rep;
  rep.local_comm_id = rep.remote_comm_id = number;
  rep.local_qpn = Qpn{2 + number % 0xFFFFF0};
  wire::CmDreq dreq;
  dreq.local_comm_id = dreq.remote_comm_id = number;
  wire::CmMra mra;
  mra.local_comm_id = mra.remote_comm_id = number;
  mra.service_timeout = 31;
  wire::CmRtu rtu;
  rtu.local_comm_id = rtu.remote_comm_id = number;
  wire::CmSidrReq sidr;
  sidr.request_id = number;
  sidr.service_id = wire::IpServiceId(kTcpSpace, static_cast<uint16_t>(number));
  switch (number % 9) {
    case 0:
      return rep;
    case 1:
      return dreq;
    case 2:
      return mra;
    case 3:
      return GivesUp(number);
    case 4:
      return sidr;
    case 5:
      return rtu;
    case 6:
      return wire::CmPathMigration{wire::CmAttribute::kLap};
    default:
      return RequestFor(sender, static_cast<uint16_t>(number | 0x8000), number);
  }
}

void CmMessagesFromEverywhere(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  for (uint32_t number = 1;; ++number) {
    sender.Forge(kForged | (number & 0xFFFF));
    Send(sender, number, AnyMessage(sender, number));
  }
}

// Management datagrams with fields spoiled, and cut off or too long, to queue pairs 0 and 1.
void OddMads(int, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  std::minstd_rand random(1);
  for (uint32_t number = 1;; ++number) {
    wire::MadBytes mad;
    wire::EncodeMad({.transaction_id = number, .body = AnyMessage(sender, number)}, mad);
    // Base version, class, class version, method, status, attribute and modifier.
    for (unsigned spoiled = 1 + random() % 3; spoiled > 0; --spoiled)
      mad[random() % 24] = static_cast<uint8_t>(random());
    static constexpr size_t kLengths[] = {0, 1, 23, 24, 255, wire::kMadLength, 257, 1024, 4096};
    Bytes body(mad.begin(), mad.end());
    if (number % 2 == 0) body.resize(kLengths[random() % std::size(kLengths)]);
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kUdSendOnly;
    headers.bth.dest_qpn = Qpn{number % 8 == 0 ? 0u : 1u};
    headers.deth = {number % 16 == 0 ? number : 0x80010000, Qpn{number % 4 == 0 ? 0u : 1u}};
    sender.Send(headers, body);
  }
}

constexpr Attack kAttacks[] = {
    {"withdrawn_requests", WithdrawnRequests},
    {"cm_messages_from_everywhere", CmMessagesFromEverywhere},
    {"odd_mads", OddMads},
};

}  // namespace

constinit const std::span<const Attack> kConnectionAttacks(kAttacks);

}  // namespace rocegw::bench
