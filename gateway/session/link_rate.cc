// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/link_rate.h"

namespace rocegw::session {
namespace {

// enum ib_port_width, enum ib_port_speed of Linux
constexpr uint8_t k1x = 1;
constexpr uint8_t k2x = 16;
constexpr uint8_t k4x = 2;
constexpr uint8_t k8x = 4;
constexpr uint8_t kSdr = 1;
constexpr uint8_t kDdr = 2;
constexpr uint8_t kFdr10 = 8;
constexpr uint8_t kEdr = 32;
constexpr uint8_t kHdr = 64;
constexpr uint8_t kNdr = 128;

struct Row {
  uint64_t mbit_per_second;
  LinkRate rate;
};
constexpr Row kRates[] = {{1'000, {k1x, kSdr}},   {10'000, {k1x, kFdr10}}, {20'000, {k4x, kDdr}},
                          {25'000, {k1x, kEdr}},  {40'000, {k4x, kFdr10}}, {50'000, {k2x, kEdr}},
                          {100'000, {k4x, kEdr}}, {200'000, {k4x, kHdr}},  {400'000, {k4x, kNdr}}};
constexpr LinkRate kBeyond = {k8x, kNdr};
constexpr uint64_t kUnknown = 10'000;
constexpr uint64_t kBytesPerMbit = 125'000;

}  // namespace

LinkRate RateOf(uint64_t bytes_per_second) {
  const uint64_t mbit = bytes_per_second == 0 ? kUnknown : bytes_per_second / kBytesPerMbit;
  for (const Row& row : kRates) {
    if (mbit <= row.mbit_per_second) return row.rate;
  }
  return kBeyond;
}

}  // namespace rocegw::session
