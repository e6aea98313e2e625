// SPDX-License-Identifier: Apache-2.0
// One attack by forged packets: what the attacker knows, how many packets arithmetic expects for
// one change of the victim's state, and what happened. The attacker draws unknown fields at random.
// Single-threaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "gateway/port/packet_port.h"
#include "gateway/wire/headers.h"
#include "tests/support/random.h"

namespace rocegw::bench {

enum class Change : uint8_t {
  kMemory,        // memory of the program was written
  kSequence,      // the victim takes a PSN as received
  kQueuePair,     // a queue pair ended
  kMessage,       // the program received a message
  kRate,          // the sending rate was reduced
  kAcknowledged,  // the victim believes that the peer has received something
  kChannel,       // a channel ended
  kConnection,    // a connection changed its state
  kPeer,          // discovery believes, or forgets, something about a peer
  kState,         // anything else
  kCount,
};
const char* NameOf(Change change);

struct Outcome {
  uint64_t sent = 0;
  uint64_t answered = 0;  // packets that the victim sent
  std::array<uint64_t, static_cast<size_t>(Change::kCount)> changes{};

  void Add(Change change) { ++changes[static_cast<size_t>(change)]; }
  uint64_t changed() const;
};

// No number of packets changes anything.
inline constexpr double kNever = std::numeric_limits<double>::infinity();
// The transport has no such packet, or no such field.
inline constexpr double kNothing = -1;

// Bits that an attacker must guess, as docs/benchmarks.md derives them.
inline constexpr double kAddressBits = 32;  // an IPv4 address
inline constexpr double kNumberBits = 24;   // QPNs and channel numbers of gateways
inline constexpr double kPsnBits = 24;      // one PSN: the expected one
inline constexpr double kTcpPortBits = 15;  // Linux's 28,232 ephemeral ports; the other is known
inline constexpr double kTcpDataBits = 14 + 14;  // both sequence numbers in windows of 256 KiB
inline constexpr double kTcpResetBits = 32;  // the exact sequence number (RFC 5961, section 3.2)

// log2 of the expected number of packets per change.
struct Expected {
  double bits;             // here
  double rnic = kNothing;  // the same attack on plain RoCE at an RNIC
  double tcp = kNothing;   // the nearest attack on a TCP connection
};

struct Attack {
  const char* target;
  const char* packet;
  const char* knows;
  Expected expected;
  std::function<Outcome(uint64_t count, testing::Random& random)> run;
  // Packets of one look at the victim: one where nearly every packet changes something.
  static size_t BurstOf(double bits) { return bits < 10 ? 1 : 64; }
  bool cheaper_than_rnic() const { return expected.bits < expected.rnic; }
};

// Returns true if so many changes agree with arithmetic: chance alone deviates further once in 10^9
// runs.
bool Agrees(const Attack& attack, const Outcome& outcome);

// Datagram of an attacker, with a right ICRC.
struct Forged {
  wire::RxMeta meta;
  size_t length = 0;
  std::array<uint8_t, 512> bytes;

  wire::RxDatagram datagram() const { return {meta, {bytes.data(), length}}; }
};
// Writes the headers, the body (a multiple of four bytes) and the ICRC.
void Forge(const wire::Gid& from, const wire::Gid& to, const wire::Headers& headers,
           std::span<const uint8_t> body, Forged& out);

// Returns a random IPv4 address.
wire::Gid AnyAddress(testing::Random& random);
inline uint32_t Any24(testing::Random& random) { return random.Value<uint32_t>() & 0xFFFFFF; }

std::vector<Attack> NativeAttacks();
std::vector<Attack> ChannelAttacks();
std::vector<Attack> ConnectionAttacks();

}  // namespace rocegw::bench
