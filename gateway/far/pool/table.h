// SPDX-License-Identifier: Apache-2.0
// Table of a shared block pool, as it lies in a donor's memory: buckets of 16 entries, then one
// block for each entry. Processes of other hosts read and change it by READ, WRITE and
// compare-and-swap alone, so an entry's control word is the only thing that processes agree on:
// who changes it owns the entry, and a value counts only while its body names the version of the
// control word. Pure.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "gateway/base/secret_sequence.h"

namespace rocegw::far {

static_assert(std::endian::native == std::endian::little, "the table is little-endian");

constexpr uint32_t kWays = 16;

// Hash of a key under the pool's secret, so that nobody else can compute where a key belongs.
struct KeyHash {
  uint64_t first = 0;
  uint64_t second = 0;
  bool operator==(const KeyHash&) const = default;
};

enum class EntryState : uint8_t { kFree = 0, kWriting = 1, kValid = 2 };

// Control word of an entry. The stamp orders the uses of a bucket's entries: the highest one is the
// latest. It wraps around.
struct Control {
  EntryState state = EntryState::kFree;
  uint32_t version = 0;  // 30 bits; grows with each value of the entry
  uint32_t stamp = 0;

  static Control Decode(uint64_t word) {
    return {static_cast<EntryState>(word >> 62), static_cast<uint32_t>(word >> 32) & kVersions,
            static_cast<uint32_t>(word)};
  }
  uint64_t word() const {
    return uint64_t{static_cast<uint8_t>(state)} << 62 | uint64_t{version & kVersions} << 32 |
           stamp;
  }
  static constexpr uint32_t kVersions = (1u << 30) - 1;
};

struct Entry {
  uint64_t control = 0;
  // The body, which one WRITE replaces.
  KeyHash key;
  uint64_t sequence = 0;  // the highest one of a key's values is the latest
  uint64_t check = 0;     // checksum of the other members of the body and of the value
  uint32_t bytes = 0;     // size of the value
  uint32_t version = 0;   // version of the control word that this body belongs to
  uint64_t unused[2] = {};
};
static_assert(sizeof(Entry) == 64);
constexpr uint64_t kBodyOffset = sizeof(uint64_t);
constexpr uint64_t kBodyBytes = sizeof(Entry) - kBodyOffset;

using Bucket = std::array<Entry, kWays>;

// Layout of a donor's memory.
struct TableShape {
  static constexpr uint64_t kPage = 4096;

  uint64_t buckets = 0;
  uint64_t block_bytes = 0;  // a multiple of kPage

  // The most buckets that the bytes have room for.
  static TableShape Of(uint64_t bytes, uint64_t block_bytes);
  uint64_t blocks() const { return buckets * kWays; }
  uint64_t bytes() const { return BlockOffset(buckets, 0); }
  uint64_t BucketOf(const KeyHash& key) const { return key.second % buckets; }
  uint64_t BucketOffset(uint64_t bucket) const { return bucket * sizeof(Bucket); }
  uint64_t EntryOffset(uint64_t bucket, uint32_t way) const {
    return BucketOffset(bucket) + way * sizeof(Entry);
  }
  uint64_t BlockOffset(uint64_t bucket, uint32_t way) const {
    return (buckets * sizeof(Bucket) + kPage - 1) / kPage * kPage +
           (bucket * kWays + way) * block_bytes;
  }
};

// Whether the entry has a value of the key.
bool Holds(const Entry& entry, const KeyHash& key);
// Whether the control word and the body do not belong together: the entry was read while it
// changed, or a process that had lost the entry wrote its body late.
bool IsTorn(const Entry& entry);
// The entry with the latest value of the key.
std::optional<uint32_t> Latest(const Bucket& bucket, const KeyHash& key);
// An entry with an older value of the key than the one of the sequence number and way.
std::optional<uint32_t> OlderThan(const Bucket& bucket, const KeyHash& key, uint64_t sequence,
                                  uint32_t way);
// The entry that a new value gets: a free one, or the one that was not used for longest. One that
// is being written to counts as used when the write began.
uint32_t Victim(const Bucket& bucket);
// A stamp behind those of all entries.
uint32_t NextStamp(const Bucket& bucket);
// Whether no entry has a later stamp.
bool IsLatestUsed(const Bucket& bucket, uint32_t way);

// Secret of a pool, and what is derived from it.
class PoolSecret {
 public:
  explicit PoolSecret(std::span<const uint8_t> secret);

  KeyHash HashKey(std::span<const uint8_t> key) const;
  // Checksum of a value. Detects values that were overwritten while they were read, and blocks that
  // have another value than their entry says.
  uint64_t HashValue(const uint8_t* value, uint64_t bytes) const;
  // Checksum of an entry's body, given that of its value.
  uint64_t Check(const Entry& body, uint64_t value_hash) const;
  // Tag that proves knowledge of the secret. `purpose` keeps tags of different messages apart.
  uint64_t Tag(uint64_t purpose, std::span<const uint8_t> message) const;

 private:
  SecretKey Derive(std::span<const uint8_t> secret, uint64_t purpose) const;

  SecretKey first_key_, second_key_, check_key_, tag_key_;
};

}  // namespace rocegw::far
