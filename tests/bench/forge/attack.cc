// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/forge/attack.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"

namespace rocegw::bench {
namespace {

constexpr uint16_t kIpId = 7;
// log of the probability of a deviation that fails a run.
const double kUnlikely = std::log(1e-9);

// Upper bound of the log of the probability that a Poisson variable lies as far from its mean
// (Chernoff).
double LogTail(double mean, double seen) {
  if (seen == 0) return -mean;
  return seen - mean - seen * std::log(seen / mean);
}

}  // namespace

const char* NameOf(Change change) {
  switch (change) {
    case Change::kMemory:
      return "memory written";
    case Change::kSequence:
      return "PSN taken";
    case Change::kQueuePair:
      return "queue pair ended";
    case Change::kMessage:
      return "message received";
    case Change::kRate:
      return "rate reduced";
    case Change::kAcknowledged:
      return "frames acknowledged";
    case Change::kChannel:
      return "channel ended";
    case Change::kConnection:
      return "connection changed";
    case Change::kPeer:
      return "peer believed";
    case Change::kState:
      return "other state changed";
    case Change::kCount:
      break;
  }
  return "";
}

uint64_t Outcome::changed() const {
  return std::accumulate(changes.begin(), changes.end(), uint64_t{0});
}

bool Agrees(const Attack& attack, const Outcome& outcome) {
  const auto seen = static_cast<double>(outcome.changed());
  if (attack.expected.bits == kNever) return seen == 0;
  if (attack.expected.bits == 0) return outcome.changed() == outcome.sent;
  return LogTail(static_cast<double>(outcome.sent) * std::exp2(-attack.expected.bits), seen) >
         kUnlikely;
}

void Forge(const wire::Gid& from, const wire::Gid& to, const wire::Headers& headers,
           std::span<const uint8_t> body, Forged& out) {
  size_t length = wire::EncodeHeaders(headers, out.bytes.data());
  std::memcpy(out.bytes.data() + length, body.data(), body.size());
  length += body.size();
  const wire::Path path{.source = from, .destination = to};
  wire::SealIcrc(path, kIpId, out.bytes.data(), length);
  out.length = length + wire::kIcrcLength;
  out.meta.source = from;
  out.meta.destination = to;
  out.meta.source_port = path.source_port;
  out.meta.ip_id_known = true;
  out.meta.ip_id = kIpId;
}

wire::Gid AnyAddress(testing::Random& random) {
  return wire::Gid::FromV4(random.Value<uint32_t>());
}

}  // namespace rocegw::bench
