// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/table.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace rocegw::far {
namespace {

// Odd constants without structure (digits of pi), one for each lane of the value's checksum.
constexpr std::array<uint64_t, 4> kLanes{0x243F6A8885A308D3, 0x13198A2E03707345, 0xA4093822299F31D1,
                                         0x082EFA98EC4E6C89};

uint64_t Load(const uint8_t* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Both halves of the product, folded.
uint64_t Fold(uint64_t one, uint64_t other) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{one} * other;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Whether the stamp is later, in a sequence that wraps around.
bool IsLater(uint32_t one, uint32_t other) { return static_cast<int32_t>(one - other) > 0; }

bool IsBefore(const Entry& entry, uint32_t way, uint64_t sequence, uint32_t than) {
  return entry.sequence != sequence ? entry.sequence < sequence : way < than;
}

}  // namespace

TableShape TableShape::Of(uint64_t bytes, uint64_t block_bytes) {
  TableShape shape{bytes / (sizeof(Bucket) + kWays * block_bytes), block_bytes};
  while (shape.buckets != 0 && shape.bytes() > bytes) shape.buckets--;
  return shape;
}

bool Holds(const Entry& entry, const KeyHash& key) {
  const Control control = Control::Decode(entry.control);
  return control.state == EntryState::kValid && control.version == entry.version &&
         entry.key == key;
}

bool IsTorn(const Entry& entry) {
  const Control control = Control::Decode(entry.control);
  return control.state == EntryState::kValid && control.version != entry.version;
}

std::optional<uint32_t> Latest(const Bucket& bucket, const KeyHash& key) {
  std::optional<uint32_t> latest;
  for (uint32_t way = 0; way < kWays; way++) {
    if (!Holds(bucket[way], key)) continue;
    if (!latest || !IsBefore(bucket[way], way, bucket[*latest].sequence, *latest)) latest = way;
  }
  return latest;
}

std::optional<uint32_t> OlderThan(const Bucket& bucket, const KeyHash& key, uint64_t sequence,
                                  uint32_t way) {
  for (uint32_t other = 0; other < kWays; other++) {
    if (other != way && Holds(bucket[other], key) &&
        IsBefore(bucket[other], other, sequence, way)) {
      return other;
    }
  }
  return std::nullopt;
}

uint32_t Victim(const Bucket& bucket) {
  const auto free = std::find_if(bucket.begin(), bucket.end(), [](const Entry& entry) {
    return Control::Decode(entry.control).state == EntryState::kFree;
  });
  if (free != bucket.end()) return static_cast<uint32_t>(free - bucket.begin());
  const auto oldest =
      std::min_element(bucket.begin(), bucket.end(), [](const Entry& one, const Entry& other) {
        return IsLater(Control::Decode(other.control).stamp, Control::Decode(one.control).stamp);
      });
  return static_cast<uint32_t>(oldest - bucket.begin());
}

uint32_t NextStamp(const Bucket& bucket) {
  uint32_t latest = Control::Decode(bucket[0].control).stamp;
  for (const Entry& entry : bucket) {
    const uint32_t stamp = Control::Decode(entry.control).stamp;
    if (IsLater(stamp, latest)) latest = stamp;
  }
  return latest + 1;
}

bool IsLatestUsed(const Bucket& bucket, uint32_t way) {
  return Control::Decode(bucket[way].control).stamp + 1 == NextStamp(bucket);
}

PoolSecret::PoolSecret(std::span<const uint8_t> secret)
    : first_key_(Derive(secret, 1)),
      second_key_(Derive(secret, 2)),
      check_key_(Derive(secret, 3)),
      tag_key_(Derive(secret, 4)) {}

// The first 16 bytes of the secret are the key of the derivation, all of it is its input.
SecretKey PoolSecret::Derive(std::span<const uint8_t> secret, uint64_t purpose) const {
  SecretKey root{};
  std::memcpy(root.data(), secret.data(), std::min(secret.size(), sizeof root));
  const uint64_t all = SipHash(root, secret);
  SecretKey derived{};
  for (uint64_t half = 0; half < derived.size(); half++) {
    SipState state(root);
    state.Absorb(all);
    state.Absorb(purpose);
    derived[half] = state.Finish(half);
  }
  return derived;
}

KeyHash PoolSecret::HashKey(std::span<const uint8_t> key) const {
  return {SipHash(first_key_, key), SipHash(second_key_, key)};
}

uint64_t PoolSecret::HashValue(const uint8_t* value, uint64_t bytes) const {
  constexpr uint64_t kStride = kLanes.size() * 2 * sizeof(uint64_t);
  std::array<uint64_t, kLanes.size()> lanes{};
  for (size_t lane = 0; lane < lanes.size(); lane++) {
    lanes[lane] = check_key_[lane % 2] + kLanes[lane];
  }
  const auto absorb = [&](const uint8_t* from) {
    for (size_t lane = 0; lane < lanes.size(); lane++) {
      lanes[lane] =
          Fold(lanes[lane] ^ Load(from + 16 * lane), kLanes[lane] ^ Load(from + 16 * lane + 8)) +
          lanes[lane] * kLanes[lane];
    }
  };
  uint64_t at = 0;
  for (; at + kStride <= bytes; at += kStride) absorb(value + at);
  if (at != bytes) {
    std::array<uint8_t, kStride> rest{};
    std::memcpy(rest.data(), value + at, bytes - at);
    absorb(rest.data());
  }
  SipState state(check_key_);
  for (const uint64_t lane : lanes) state.Absorb(lane);
  return state.Finish(bytes);
}

uint64_t PoolSecret::Check(const Entry& body, uint64_t value_hash) const {
  SipState state(check_key_);
  for (const uint64_t word : {body.key.first, body.key.second, body.sequence,
                              uint64_t{body.bytes} << 32 | body.version}) {
    state.Absorb(word);
  }
  return state.Finish(value_hash);
}

uint64_t PoolSecret::Tag(uint64_t purpose, std::span<const uint8_t> message) const {
  SecretKey key = tag_key_;
  key[1] ^= purpose;
  return SipHash(key, message);
}

}  // namespace rocegw::far
