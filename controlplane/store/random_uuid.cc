// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/random_uuid.h"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace rocegw::store {

std::string RandomUuid() {
  std::array<uint8_t, 16> bytes;
  // 16 bytes are never truncated; without random numbers the program cannot continue.
  if (getrandom(bytes.data(), bytes.size(), 0) != ssize_t{16}) std::abort();
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3f) | 0x80);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace rocegw::store
