// SPDX-License-Identifier: Apache-2.0
// Messages by which a process joins a shared block pool, in private data of connection requests
// and of their answers. Both sides prove that they know the pool's secret:
//
//   process: connect, Ask            donor: reject, Challenge (it keeps nothing)
//   process: connect, Join           donor: Grant, in a rejection for endpoints, which need no
//                                           connection, or in the reply for queue pairs
//
// The secret itself is never sent. Fields are little-endian, as the table is. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gateway/far/pool/table.h"

namespace rocegw::far {

using Nonce = std::array<uint64_t, 2>;

enum class PoolPath : uint8_t {
  kQueuePair = 1,  // a reliable connection
  kEndpoint = 2,   // endpoints of rocegwdv.h
};

struct Ask {
  Nonce process{};
};

struct Challenge {
  Nonce donor{};
};

struct Join {
  Nonce process{};
  Nonce donor{};
  PoolPath path = PoolPath::kQueuePair;
};

struct PoolGrant {
  PoolPath path = PoolPath::kQueuePair;
  uint64_t address = 0;  // the donor's memory
  uint32_t key = 0;      // key of that memory's region
  uint32_t endpoint = 0;
  uint32_t endpoint_key = 0;
  TableShape shape;
};

struct PoolRefusal {
  int error = 0;  // errno
};

using AskBytes = std::array<uint8_t, 24>;
using ChallengeBytes = std::array<uint8_t, 24>;
using JoinBytes = std::array<uint8_t, 56>;
using GrantBytes = std::array<uint8_t, 56>;
using PoolRefusalBytes = std::array<uint8_t, 16>;

AskBytes Encode(const Ask& ask);
ChallengeBytes Encode(const Challenge& challenge);
JoinBytes Encode(const Join& join, const PoolSecret& secret);
// `join`: the message that the grant answers.
GrantBytes Encode(const PoolGrant& grant, const Join& join, const PoolSecret& secret);
PoolRefusalBytes Encode(const PoolRefusal& refusal);

// nullopt: another message, another version, or a tag that does not prove the secret. `data` may
// be longer: connection managers pad private data.
std::optional<Ask> DecodeAsk(std::span<const uint8_t> data);
std::optional<Challenge> DecodeChallenge(std::span<const uint8_t> data);
// The nonces and path of a Join, proven or not.
std::optional<Join> DecodeJoin(std::span<const uint8_t> data);
bool Proves(std::span<const uint8_t> join, const PoolSecret& secret);
std::optional<PoolGrant> DecodeGrant(std::span<const uint8_t> data, const Join& join,
                                     const PoolSecret& secret);
std::optional<PoolRefusal> DecodePoolRefusal(std::span<const uint8_t> data);

// Nonces of a donor that remembers none of them: each holds for the process, the host and about the
// time that it was made for.
class Challenger {
 public:
  static constexpr uint64_t kSeconds = 30;  // that a challenge holds

  explicit Challenger(const SecretKey& key) : key_(key) {}
  // `now`: seconds, from any beginning.
  Nonce Make(const Nonce& process, std::string_view host, uint64_t now) const;
  bool Holds(const Join& join, std::string_view host, uint64_t now) const;

 private:
  uint64_t Seal(const Nonce& process, std::string_view host, uint64_t made) const;

  const SecretKey key_;
};

}  // namespace rocegw::far
