// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/join_messages.h"

#include <cstring>

namespace rocegw::far {
namespace {

constexpr uint32_t kMagic = 0x42504752;  // "RGPB"
constexpr uint16_t kVersion = 1;

enum class Type : uint8_t { kAsk = 1, kChallenge = 2, kJoin = 3, kGrant = 4, kRefusal = 5 };

struct Head {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  Type type = Type::kAsk;
  uint8_t path = 0;
};
static_assert(sizeof(Head) == 8);

struct NonceMessage {
  Head head;
  Nonce nonce{};
};
static_assert(sizeof(NonceMessage) == sizeof(AskBytes));

struct JoinMessage {
  Head head;
  Nonce process{};
  Nonce donor{};
  uint64_t unused = 0;
  uint64_t tag = 0;
};
static_assert(sizeof(JoinMessage) == sizeof(JoinBytes));

struct GrantMessage {
  Head head;
  uint64_t address = 0;
  uint64_t buckets = 0;
  uint64_t block_bytes = 0;
  uint32_t key = 0;
  uint32_t endpoint = 0;
  uint32_t endpoint_key = 0;
  uint32_t unused = 0;
  uint64_t tag = 0;
};
static_assert(sizeof(GrantMessage) == sizeof(GrantBytes));

struct RefusalMessage {
  Head head;
  uint64_t error = 0;
};
static_assert(sizeof(RefusalMessage) == sizeof(PoolRefusalBytes));

template <typename Bytes, typename Message>
Bytes ToBytes(const Message& message) {
  Bytes bytes;
  std::memcpy(bytes.data(), &message, sizeof message);
  return bytes;
}

template <typename Message>
std::optional<Message> FromBytes(std::span<const uint8_t> data, Type type) {
  Message message;
  if (data.size() < sizeof message) return std::nullopt;
  std::memcpy(&message, data.data(), sizeof message);
  if (message.head.magic != kMagic || message.head.version != kVersion ||
      message.head.type != type) {
    return std::nullopt;
  }
  return message;
}

template <typename Message>
std::span<const uint8_t> Untagged(const Message& message) {
  return {reinterpret_cast<const uint8_t*>(&message), sizeof message - sizeof message.tag};
}

uint64_t TagOf(const JoinMessage& message, const PoolSecret& secret) {
  return secret.Tag(static_cast<uint64_t>(Type::kJoin), Untagged(message));
}

// The tag covers the nonces as well: a grant holds for one Join.
uint64_t TagOf(const GrantMessage& message, const Join& join, const PoolSecret& secret) {
  struct {
    GrantMessage message;
    Nonce process, donor;
  } covered{message, join.process, join.donor};
  covered.message.tag = 0;
  return secret.Tag(static_cast<uint64_t>(Type::kGrant),
                    {reinterpret_cast<const uint8_t*>(&covered), sizeof covered});
}

std::optional<PoolPath> PathOf(uint8_t path) {
  switch (static_cast<PoolPath>(path)) {
    case PoolPath::kQueuePair:
    case PoolPath::kEndpoint:
      return static_cast<PoolPath>(path);
  }
  return std::nullopt;
}

}  // namespace

AskBytes Encode(const Ask& ask) {
  return ToBytes<AskBytes>(NonceMessage{{.type = Type::kAsk}, ask.process});
}

ChallengeBytes Encode(const Challenge& challenge) {
  return ToBytes<ChallengeBytes>(NonceMessage{{.type = Type::kChallenge}, challenge.donor});
}

JoinBytes Encode(const Join& join, const PoolSecret& secret) {
  JoinMessage message{
      {.type = Type::kJoin, .path = static_cast<uint8_t>(join.path)}, join.process, join.donor};
  message.tag = TagOf(message, secret);
  return ToBytes<JoinBytes>(message);
}

GrantBytes Encode(const PoolGrant& grant, const Join& join, const PoolSecret& secret) {
  GrantMessage message{{.type = Type::kGrant, .path = static_cast<uint8_t>(grant.path)},
                       grant.address,
                       grant.shape.buckets,
                       grant.shape.block_bytes,
                       grant.key,
                       grant.endpoint,
                       grant.endpoint_key};
  message.tag = TagOf(message, join, secret);
  return ToBytes<GrantBytes>(message);
}

PoolRefusalBytes Encode(const PoolRefusal& refusal) {
  return ToBytes<PoolRefusalBytes>(
      RefusalMessage{{.type = Type::kRefusal}, static_cast<uint64_t>(refusal.error)});
}

std::optional<Ask> DecodeAsk(std::span<const uint8_t> data) {
  const auto message = FromBytes<NonceMessage>(data, Type::kAsk);
  if (!message) return std::nullopt;
  return Ask{message->nonce};
}

std::optional<Challenge> DecodeChallenge(std::span<const uint8_t> data) {
  const auto message = FromBytes<NonceMessage>(data, Type::kChallenge);
  if (!message) return std::nullopt;
  return Challenge{message->nonce};
}

std::optional<Join> DecodeJoin(std::span<const uint8_t> data) {
  const auto message = FromBytes<JoinMessage>(data, Type::kJoin);
  const auto path = message ? PathOf(message->head.path) : std::nullopt;
  if (!path) return std::nullopt;
  return Join{message->process, message->donor, *path};
}

bool Proves(std::span<const uint8_t> join, const PoolSecret& secret) {
  const auto message = FromBytes<JoinMessage>(join, Type::kJoin);
  return message && TagOf(*message, secret) == message->tag;
}

std::optional<PoolGrant> DecodeGrant(std::span<const uint8_t> data, const Join& join,
                                     const PoolSecret& secret) {
  const auto message = FromBytes<GrantMessage>(data, Type::kGrant);
  const auto path = message ? PathOf(message->head.path) : std::nullopt;
  if (!path || TagOf(*message, join, secret) != message->tag) return std::nullopt;
  PoolGrant grant{*path,
                  message->address,
                  message->key,
                  message->endpoint,
                  message->endpoint_key,
                  {message->buckets, message->block_bytes}};
  if (grant.shape.buckets == 0) return std::nullopt;
  return grant;
}

std::optional<PoolRefusal> DecodePoolRefusal(std::span<const uint8_t> data) {
  const auto message = FromBytes<RefusalMessage>(data, Type::kRefusal);
  if (!message || message->error == 0 || message->error > 4095) return std::nullopt;
  return PoolRefusal{static_cast<int>(message->error)};
}

uint64_t Challenger::Seal(const Nonce& process, std::string_view host, uint64_t made) const {
  SipState state(key_);
  state.Absorb(made);
  for (const uint64_t word : process) state.Absorb(word);
  return state.Finish(SipHash(key_, {reinterpret_cast<const uint8_t*>(host.data()), host.size()}));
}

Nonce Challenger::Make(const Nonce& process, std::string_view host, uint64_t now) const {
  return {now, Seal(process, host, now)};
}

bool Challenger::Holds(const Join& join, std::string_view host, uint64_t now) const {
  const auto [made, seal] = join.donor;
  return made <= now && now - made <= kSeconds && seal == Seal(join.process, host, made);
}

}  // namespace rocegw::far
