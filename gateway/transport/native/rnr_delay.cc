// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/native/rnr_delay.h"

namespace rocegw::transport {

Duration RnrDelay(uint8_t code) {
  // Unit: 10 microseconds.
  static constexpr uint32_t kDelays[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                           16,    24,   32,   48,    64,    96,    128,   192,
                                           256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                           4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return Microseconds(int64_t{kDelays[code & 31]} * 10);
}

}  // namespace rocegw::transport
