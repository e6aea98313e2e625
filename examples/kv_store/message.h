// SPDX-License-Identifier: Apache-2.0
// Messages of the store: one request, one reply, each with a checksum over all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kv {

constexpr size_t kLongestKey = 256;
constexpr size_t kLongestValue = 32 << 10;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kChecksumBytes = 4;
constexpr size_t kLongestMessage = kHeaderBytes + kLongestKey + kLongestValue + kChecksumBytes;

enum class Op : uint8_t {
  kHello = 1,   // value: the wanted transport, or nothing; reply: what connects
  kStatus = 2,  // reply: lines for people and programs
  kPing = 3,
  kGet = 4,    // of the cluster: a majority answers
  kPut = 5,    // of the cluster: a majority stores
  kRead = 6,   // of this replica alone
  kWrite = 7,  // of this replica alone; the newer version stays
};

enum class Outcome : uint8_t { kDone = 0, kAbsent = 1, kNoMajority = 2, kRefused = 3 };

// Order of the values of a key. Two replicas never make the same version.
using Version = uint64_t;
constexpr Version MakeVersion(uint64_t count, uint8_t replica) { return count << 8 | replica; }
constexpr uint64_t CountOf(Version version) { return version >> 8; }

struct Message {
  Op op = Op::kPing;
  Outcome outcome = Outcome::kDone;
  // The replica now offers another transport: the connection is to be made anew.
  bool moved = false;
  Version version = 0;
  std::string key;
  std::string value;

  bool operator==(const Message&) const = default;
};

// CRC32C (Castagnoli).
uint32_t Checksum(std::span<const std::byte> bytes);
uint32_t Checksum(const std::string& text);

std::string Encode(const Message& message);
// Returns nullopt for bytes that are no message: a wrong length, a wrong checksum, an unknown
// operation.
std::optional<Message> Decode(const std::string& bytes);

}  // namespace kv
