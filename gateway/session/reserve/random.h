// SPDX-License-Identifier: Apache-2.0
// Unpredictable numbers from the kernel (getrandom(2)), fetched in batches: for keys, QPNs and
// PSNs, which a peer must not be able to guess. Control thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rocegw::session {

class Random {
 public:
  uint32_t Next();
  uint64_t Next64() { return static_cast<uint64_t>(Next()) << 32 | Next(); }

 private:
  std::array<uint32_t, 64> batch_{};
  size_t left_ = 0;
};

}  // namespace rocegw::session
