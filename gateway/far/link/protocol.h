// SPDX-License-Identifier: Apache-2.0
// Messages between a session and a donor. The connection request carries a Hello, its reply a
// Welcome, a rejection a Refusal; messages of 64 bytes follow by SEND. Data is read and written by
// RDMA without the donor's processor. All fields are big-endian on the wire. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rocegw::far {

constexpr uint16_t kDefaultPort = 7475;
constexpr size_t kTenantBytes = 32;  // with the final zero
constexpr size_t kMessageBytes = 64;

// Proof that a later connection is of the same session: who has it gets, or ends, its leases.
struct SessionProof {
  uint64_t session = 0;  // number at the donor; 0: none
  uint64_t secret = 0;
  bool operator==(const SessionProof&) const = default;
};

// First words of a session: fits the private data of a connection request (56 bytes).
struct Hello {
  std::string tenant;  // at most kTenantBytes - 1; longer names are cut
  // Session that the connection should continue, because its gateway was restarted. A donor that
  // does not know the session, or an earlier version, begins another one.
  SessionProof earlier = {};
  // The earlier session is to end instead: the program has given the donor up meanwhile.
  bool ends_earlier = false;
  // The program ends without a word. A session that was disconnected is of a program that has
  // ended, or whose gateway is restarted: its leases end as soon as others need the memory.
  bool brief = false;
};

struct Welcome {
  uint32_t lease_seconds = 0;  // leases end when the session is silent for so long
  uint64_t free_bytes = 0;     // that this tenant can still lease
  SessionProof proof = {};     // none: the donor is of an earlier version
  bool continued = false;      // the session has its leases, with their keys
};

struct Refusal {
  int error = 0;  // errno
};

enum class MessageType : uint16_t {
  kLease = 1,    // session: id, bytes
  kLeased = 2,   // donor: id, error, and lease, address, key, free_bytes
  kReturn = 3,   // session: lease
  kRenew = 4,    // session: renews all its leases
  kRenewed = 5,  // donor: free_bytes, draining
  kClose = 6,    // session: ends, with all its leases; donors of earlier versions end it as well
};

struct Message {
  MessageType type = MessageType::kRenew;
  int error = 0;  // errno, 0: granted
  uint64_t id = 0;
  uint64_t bytes = 0;
  uint64_t lease = 0;
  uint64_t address = 0;
  uint64_t free_bytes = 0;
  uint32_t key = 0;
  bool draining = false;  // donor: the session should move its data to other donors
};

using HelloBytes = std::array<uint8_t, 8 + kTenantBytes + 16>;
using WelcomeBytes = std::array<uint8_t, 40>;
using RefusalBytes = std::array<uint8_t, 12>;
using MessageBytes = std::array<uint8_t, kMessageBytes>;

HelloBytes Encode(const Hello& hello);
WelcomeBytes Encode(const Welcome& welcome);
RefusalBytes Encode(const Refusal& refusal);
MessageBytes Encode(const Message& message);

// nullopt: too short, another protocol, another version, or a value that the protocol does not
// have. `size` may be larger: connection managers pad private data.
std::optional<Hello> DecodeHello(const void* data, size_t size);
std::optional<Welcome> DecodeWelcome(const void* data, size_t size);
std::optional<Refusal> DecodeRefusal(const void* data, size_t size);
std::optional<Message> DecodeMessage(const void* data, size_t size);

}  // namespace rocegw::far
