// SPDX-License-Identifier: Apache-2.0
// ICRC of random datagrams: sealing with and without a known payload CRC, verifying with and
// without the IPv4 ID.
#include <gtest/gtest.h>

#include <cstring>

#include "gateway/wire/crc/crc32.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"
#include "tests/support/random.h"

namespace rocegw::wire {
namespace {

using rocegw::testing::Random;
using rocegw::testing::TestSeed;

Gid SomeGid(Random& random, bool v4) {
  if (v4) return Gid::FromV4(random.Value<uint32_t>());
  Gid gid;
  for (uint8_t& byte : gid.bytes) byte = random.Value<uint8_t>();
  gid.bytes[0] |= 0x20;
  return gid;
}

Path SomePath(Random& random, bool v4) {
  Path path;
  path.source = SomeGid(random, v4);
  path.destination = SomeGid(random, v4);
  path.source_port = random.Value<uint16_t>();
  path.traffic_class = random.Value<uint8_t>();
  path.hop_limit = random.Value<uint8_t>();
  return path;
}

RxMeta MetaOf(const Path& path) {
  RxMeta meta;
  meta.source = path.source;
  meta.destination = path.destination;
  meta.source_port = path.source_port;
  // Routers and switches change both.
  meta.traffic_class = static_cast<uint8_t>(~path.traffic_class);
  meta.hop_limit = static_cast<uint8_t>(path.hop_limit - 1);
  return meta;
}

// Computes the ICRC by definition: a bit-by-bit CRC over the masked headers, written out as bytes.
uint32_t ReferenceIcrc(const Path& path, uint16_t ip_id, std::span<const uint8_t> datagram) {
  std::vector<uint8_t> covered(8, 0xFF);
  const auto put16 = [&covered](size_t value) {
    covered.push_back(static_cast<uint8_t>(value >> 8));
    covered.push_back(static_cast<uint8_t>(value));
  };
  const size_t udp_length = 8 + datagram.size() + 4;
  if (path.destination.IsV4()) {
    put16(0x45FF);
    put16(20 + udp_length);
    put16(ip_id);
    put16(0x4000);
    put16(0xFF11);
    put16(0xFFFF);
    covered.insert(covered.end(), path.source.bytes.begin() + 12, path.source.bytes.end());
    covered.insert(covered.end(), path.destination.bytes.begin() + 12,
                   path.destination.bytes.end());
  } else {
    put16(0x6FFF);
    put16(0xFFFF);
    put16(udp_length);
    put16(0x11FF);
    covered.insert(covered.end(), path.source.bytes.begin(), path.source.bytes.end());
    covered.insert(covered.end(), path.destination.bytes.begin(), path.destination.bytes.end());
  }
  put16(path.source_port);
  put16(4791);
  put16(udp_length);
  put16(0xFFFF);
  const size_t bth = covered.size();
  covered.insert(covered.end(), datagram.begin(), datagram.end());
  covered[bth + 4] = 0xFF;
  uint32_t state = 0xFFFFFFFF;
  for (const uint8_t byte : covered) {
    for (int bit = 0; bit < 8; ++bit) {
      state = state >> 1 ^ (((state ^ byte >> bit) & 1) != 0 ? 0xEDB88320u : 0u);
    }
  }
  return ~state;
}

class IcrcWithKernel : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { crc32::UseKernel(*crc32::SupportedKernels()[GetParam()]); }
  void TearDown() override { crc32::UseKernel(*crc32::SupportedKernels().front()); }
};

TEST_P(IcrcWithKernel, Seal_IsTheIcrcByTheBookAndVerifies) {
  Random random(TestSeed(11 + GetParam()));
  for (int round = 0; round < 4000; ++round) {
    const bool v4 = random.Coin();
    const Path path = SomePath(random, v4);
    const auto ip_id = random.Value<uint16_t>();
    const size_t length = kBthLength + (random.Coin() ? random.Below(100) : random.Below(4130));
    std::vector<uint8_t> datagram = random.Bytes(length + 4);
    SealIcrc(path, ip_id, datagram.data(), length);
    uint32_t sealed;
    std::memcpy(&sealed, datagram.data() + length, sizeof sealed);
    ASSERT_EQ(sealed, ReferenceIcrc(path, ip_id, std::span(datagram).first(length))) << length;
    RxMeta meta = MetaOf(path);
    meta.ip_id_known = true;
    meta.ip_id = ip_id;
    uint16_t found = 0;
    ASSERT_TRUE(VerifyIcrc(meta, datagram, &found)) << length;
    meta.ip_id_known = false;
    meta.ip_id = v4 ? 0 : ip_id;
    ASSERT_TRUE(VerifyIcrc(meta, datagram, &found)) << length;
    ASSERT_EQ(found, ip_id);
  }
}

TEST_P(IcrcWithKernel, SealAroundAnOutsidePart_IsTheSame) {
  Random random(TestSeed(31 + GetParam()));
  for (int round = 0; round < 4000; ++round) {
    const Path path = SomePath(random, random.Coin());
    const auto ip_id = random.Value<uint16_t>();
    const size_t before = kBthLength + random.Below(kMaxHeaderLength - kBthLength + 1);
    const size_t payload = random.Between(1, 4096);
    const size_t length = before + payload + random.Below(4);
    std::vector<uint8_t> whole = random.Bytes(length + 4);
    std::vector<uint8_t> gap = whole;
    const std::vector<uint8_t> outside(whole.begin() + static_cast<ptrdiff_t>(before),
                                       whole.begin() + static_cast<ptrdiff_t>(before + payload));
    std::fill_n(gap.begin() + static_cast<ptrdiff_t>(before), payload, uint8_t{0});
    SealIcrc(path, ip_id, whole.data(), length);
    SealIcrcAround(path, ip_id, gap.data(), length,
                   {outside.data(), static_cast<uint32_t>(before), static_cast<uint32_t>(payload)});
    ASSERT_EQ(std::memcmp(whole.data() + length, gap.data() + length, 4), 0)
        << before << " + " << payload << " of " << length;
  }
}

TEST_P(IcrcWithKernel, SealWithKnownCrc_IsTheSame) {
  Random random(TestSeed(21 + GetParam()));
  for (int round = 0; round < 4000; ++round) {
    const Path path = SomePath(random, random.Coin());
    const auto ip_id = random.Value<uint16_t>();
    const size_t before = kBthLength + random.Below(kMaxHeaderLength - kBthLength + 1);
    const size_t payload = random.Between(1, 4096);
    const size_t pad = random.Below(4);
    const size_t length = before + payload + pad;
    std::vector<uint8_t> plain = random.Bytes(length + 4);
    std::vector<uint8_t> known = plain;
    SealIcrc(path, ip_id, plain.data(), length);
    SealIcrc(path, ip_id, known.data(), length,
             {before, payload, CrcUpdate(0, std::span(known).subspan(before, payload))});
    ASSERT_EQ(plain, known) << before << ' ' << payload << ' ' << pad;
  }
}

TEST_P(IcrcWithKernel, UnknownId_IsFoundForEveryId) {
  Random random(TestSeed(31 + GetParam()));
  for (const size_t payload : {size_t{0}, size_t{8}, size_t{1024}, size_t{4096}}) {
    const Path path = SomePath(random, true);
    const RxMeta meta = MetaOf(path);
    const size_t length = kBthLength + payload;
    std::vector<uint8_t> datagram = random.Bytes(length + 4);
    for (uint32_t id = 0; id<0x10000; id += payload> 100 ? 13 : 1) {
      SealIcrc(path, static_cast<uint16_t>(id), datagram.data(), length);
      uint16_t found = static_cast<uint16_t>(~id);
      ASSERT_TRUE(VerifyIcrc(meta, datagram, &found)) << payload;
      ASSERT_EQ(found, id) << payload;
    }
  }
}

// A random word is valid for some ID with probability 2^-16: of 2^21, 32 pass on average, with a
// standard deviation below 6.
TEST_P(IcrcWithKernel, UnknownId_RandomWordsPassAtTwoToTheMinusSixteen) {
  Random random(TestSeed(41 + GetParam()));
  const Path path = SomePath(random, true);
  const RxMeta meta = MetaOf(path);
  std::vector<uint8_t> datagram = random.Bytes(kBthLength + 8 + 4);
  int passed = 0;
  for (uint32_t i = 0; i < 1u << 21; ++i) {
    const auto word = random.Value<uint32_t>();
    std::memcpy(datagram.data() + datagram.size() - 4, &word, sizeof word);
    uint16_t found;
    if (VerifyIcrc(meta, datagram, &found)) ++passed;
  }
  EXPECT_GE(passed, 32 - 30);
  EXPECT_LE(passed, 32 + 30);
}

// With a known ID, or on IPv6, every burst of up to 32 bits is detected. With an unknown ID, one
// burst in 2^16 is not, but never a short one.
TEST_P(IcrcWithKernel, Bursts_AreSeen) {
  Random random(TestSeed(51 + GetParam()));
  for (int round = 0; round < 20000; ++round) {
    const bool v4 = random.Coin();
    const Path path = SomePath(random, v4);
    RxMeta meta = MetaOf(path);
    const auto ip_id = random.Value<uint16_t>();
    meta.ip_id = v4 ? ip_id : 0;
    meta.ip_id_known = v4;
    const size_t length = kBthLength + 4 * random.Below(40);
    std::vector<uint8_t> datagram = random.Bytes(length + 4);
    SealIcrc(path, ip_id, datagram.data(), length);
    // From byte 5 on: byte 4 is not covered.
    const size_t first_bit = 40 + random.Below((datagram.size() - 9) * 8);
    const auto pattern = random.Value<uint32_t>() | 1;
    for (size_t i = 0; i < 32; ++i) {
      if ((pattern >> i & 1) != 0)
        datagram[(first_bit + i) / 8] ^= static_cast<uint8_t>(1 << ((first_bit + i) % 8));
    }
    uint16_t found;
    ASSERT_FALSE(VerifyIcrc(meta, datagram, &found));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, IcrcWithKernel,
                         ::testing::Range(size_t{0}, crc32::SupportedKernels().size()),
                         [](const auto& kernel) {
                           return std::string(crc32::SupportedKernels()[kernel.param]->name);
                         });

}  // namespace
}  // namespace rocegw::wire
