// SPDX-License-Identifier: Apache-2.0
// Descriptors of a hostile program: valid ones that are then damaged, from single bits to all of
// them; and the rule which of them a gateway must refuse when it reads them, written from the
// attach protocol (gateway/abi/rings.h) alone. Holds no state besides the seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/verbs/types.h"
#include "tests/support/random.h"

namespace rocegw::testing {

// Keys, addresses and numbers that the program knows and that descriptors can name.
struct Surroundings {
  uint64_t memory = 0;  // own memory, memory_bytes long
  uint64_t memory_bytes = 0;
  std::vector<uint32_t> local_keys;  // the first has all rights
  uint64_t hole = 0;                 // registered and unmapped memory, memory_bytes long
  uint32_t hole_key = 0;
  uint64_t peer_memory = 0;
  std::vector<uint32_t> remote_keys;
  uint32_t window = 0;
  uint32_t peer_qpn = 0;
  uint32_t peer_srq = 0;  // for XRC
  uint32_t qkey = 0;
  uint32_t peer = 0;  // of endpoints
  rocegw_address_vector address{};
};

class Descriptors {
 public:
  Descriptors(Random& random, verbs::QpType type, const Surroundings& around)
      : random_(random), type_(type), around_(around) {}

  enum class Harm : uint8_t {
    kHarmless,  // only fields that may have any value
    kField,     // one field, or a few bits
    kAll,
  };
  // Write a valid descriptor and change at least one bit of it.
  void WriteSend(std::span<uint8_t> slot, Harm harm);
  void WriteReceive(std::span<uint8_t> slot, Harm harm);

 private:
  void GoodSend(std::span<uint8_t> slot);
  rocegw_sge GoodPiece(uint32_t most);
  void SpoilPiece(rocegw_sge& piece);
  void FlipBits(std::span<uint8_t> slot);
  void SpoilSendField(std::span<uint8_t> slot);

  Random& random_;
  verbs::QpType type_;
  const Surroundings& around_;
};

// Returns true if a queue pair of that type with such queues must refuse the descriptor, whatever
// keys, addresses and peers are valid.
bool Malformed(verbs::QpType type, const rocegw_qp_reply& queues, std::span<const uint8_t> slot);

}  // namespace rocegw::testing
