// SPDX-License-Identifier: Apache-2.0
// Descriptors of a hostile program: first what a good one would write, then spoiled, from single
// bits to everything. And which of them a gateway must refuse when it reads them, by the words of
// the attach protocol (gateway/abi/rings.h) alone. No state but the seed's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/verbs/types.h"
#include "tests/support/random.h"

namespace rocegw::testing {

// What a program knows and descriptors can name.
struct Surroundings {
  uint64_t memory = 0;  // its own, of memory_bytes
  uint64_t memory_bytes = 0;
  std::vector<uint32_t> local_keys;  // the first is good for everything
  uint64_t hole = 0;                 // memory that is registered, of memory_bytes, and not there
  uint32_t hole_key = 0;
  uint64_t peer_memory = 0;
  std::vector<uint32_t> remote_keys;
  uint32_t window = 0;
  uint32_t peer_qpn = 0;
  uint32_t peer_srq = 0;  // of XRC
  uint32_t qkey = 0;
  rocegw_address_vector peer{};
};

class Descriptors {
 public:
  Descriptors(Random& random, verbs::QpType type, const Surroundings& around)
      : random_(random), type_(type), around_(around) {}

  enum class Harm : uint8_t {
    kHarmless,  // only what may have any value
    kField,     // one field, or a few bits anywhere
    kAll,
  };
  // Each changes at least a bit of what a good program would write.
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

// Must a queue pair of that type with such queues refuse to begin with this descriptor? What
// depends on keys, addresses and peers is not asked here.
bool Malformed(verbs::QpType type, const rocegw_qp_reply& queues, std::span<const uint8_t> slot);

}  // namespace rocegw::testing
