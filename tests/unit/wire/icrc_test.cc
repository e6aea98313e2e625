// SPDX-License-Identifier: Apache-2.0
// ICRC against recorded frames: coverage, masks, and the ID that a UDP socket hides.
#include "gateway/wire/crc/icrc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "gateway/wire/headers.h"
#include "tests/support/golden_frames.h"

namespace rocegw::wire {
namespace {

using testing::kGoldenFrames;
using testing::Parse;
using testing::ParsedFrame;

constexpr size_t kEthernet = 14;

bool VerifyFrame(const std::vector<uint8_t>& frame) {
  const ParsedFrame parsed = testing::ParseFrame(frame);
  uint16_t ip_id = 0;
  return VerifyIcrc(parsed.meta, parsed.datagram, &ip_id);
}

Path PathOf(const RxMeta& meta) {
  Path path;
  path.source = meta.source;
  path.destination = meta.destination;
  path.source_port = meta.source_port;
  path.traffic_class = meta.traffic_class;
  path.hop_limit = meta.hop_limit;
  return path;
}

TEST(VerifyIcrc, GoldenFrame_IsRight) {
  for (const auto& golden : kGoldenFrames) {
    const ParsedFrame frame = Parse(golden);
    uint16_t ip_id = 0xDEAD;
    EXPECT_TRUE(VerifyIcrc(frame.meta, frame.datagram, &ip_id)) << golden.name;
    EXPECT_EQ(ip_id, frame.meta.ip_id) << golden.name;
  }
}

TEST(VerifyIcrc, UnknownIpId_IsRecovered) {
  for (const auto& golden : kGoldenFrames) {
    ParsedFrame frame = Parse(golden);
    const uint16_t sent_id = frame.meta.ip_id;
    frame.meta.ip_id_known = false;
    frame.meta.ip_id = 0;
    uint16_t ip_id = 0xDEAD;
    EXPECT_TRUE(VerifyIcrc(frame.meta, frame.datagram, &ip_id)) << golden.name;
    EXPECT_EQ(ip_id, sent_id) << golden.name;
  }
}

TEST(VerifyIcrc, AnyFlippedBitOfTheDatagram_IsWrong) {
  for (const auto& golden : kGoldenFrames) {
    ParsedFrame frame = Parse(golden);
    for (size_t byte = 0; byte < frame.datagram.size(); ++byte) {
      if (byte == 4) continue;  // FECN, BECN and reserved: not covered
      for (int bit = 0; bit < 8; ++bit) {
        frame.datagram[byte] ^= static_cast<uint8_t>(1 << bit);
        uint16_t ip_id;
        EXPECT_FALSE(VerifyIcrc(frame.meta, frame.datagram, &ip_id))
            << golden.name << " byte " << byte << " bit " << bit;
        frame.datagram[byte] ^= static_cast<uint8_t>(1 << bit);
      }
    }
  }
}

// Bytes that switches and routers change; none of them may matter.
TEST(VerifyIcrc, VariantFieldChanged_IsRight) {
  for (const auto& golden : kGoldenFrames) {
    const std::vector<uint8_t> frame = testing::FromHex(golden.hex);
    const bool v4 = frame[kEthernet] == 0x45;
    const size_t udp = kEthernet + (v4 ? 20 : 40);
    std::vector<size_t> variant = {udp + 6, udp + 7, udp + 8 + 4};
    if (v4) {
      for (const size_t offset : {1, 8, 10, 11}) variant.push_back(kEthernet + offset);
    } else {
      for (const size_t offset : {1, 2, 3, 7}) variant.push_back(kEthernet + offset);
    }
    for (const size_t offset : variant) {
      std::vector<uint8_t> changed = frame;
      changed[offset] ^= 0xFF;
      EXPECT_TRUE(VerifyFrame(changed)) << golden.name << " offset " << offset;
    }
    if (!v4) {
      std::vector<uint8_t> changed = frame;
      changed[kEthernet] ^= 0x0F;  // upper half of the traffic class
      EXPECT_TRUE(VerifyFrame(changed)) << golden.name;
    }
  }
}

TEST(VerifyIcrc, InvariantFieldChanged_IsWrong) {
  for (const auto& golden : kGoldenFrames) {
    const std::vector<uint8_t> frame = testing::FromHex(golden.hex);
    const bool v4 = frame[kEthernet] == 0x45;
    const size_t udp = kEthernet + (v4 ? 20 : 40);
    // Source port, BTH byte 1, P_Key, QPN, AckReq, PSN; addresses and, on IPv4, the ID.
    std::vector<size_t> covered = {udp, udp + 1};
    for (const size_t offset : {1, 2, 3, 5, 6, 7, 8, 9, 10, 11})
      covered.push_back(udp + 8 + offset);
    if (v4) {
      for (const size_t offset : {4, 5}) covered.push_back(kEthernet + offset);
    }
    for (size_t i = 0; i < (v4 ? 8u : 32u); ++i) covered.push_back(udp - 1 - i);
    for (const size_t offset : covered) {
      std::vector<uint8_t> changed = frame;
      changed[offset] ^= 0x40;
      EXPECT_FALSE(VerifyFrame(changed)) << golden.name << " offset " << offset;
    }
  }
}

TEST(VerifyIcrc, ShorterThanHeaderAndIcrc_IsWrong) {
  const ParsedFrame frame = Parse(testing::kRcAckFrame);
  for (size_t size = 0; size < kBthLength + kIcrcLength; ++size) {
    uint16_t ip_id;
    EXPECT_FALSE(VerifyIcrc(frame.meta, std::span(frame.datagram).first(size), &ip_id)) << size;
  }
}

TEST(SealIcrc, GoldenFrame_IsReproduced) {
  for (const auto& golden : kGoldenFrames) {
    const ParsedFrame frame = Parse(golden);
    std::vector<uint8_t> sealed = frame.datagram;
    const size_t length = sealed.size() - kIcrcLength;
    std::fill(sealed.begin() + static_cast<ptrdiff_t>(length), sealed.end(), uint8_t{0});
    SealIcrc(PathOf(frame.meta), frame.meta.ip_id, sealed.data(), length);
    EXPECT_EQ(sealed, frame.datagram) << golden.name;
  }
}

TEST(SealIcrc, PayloadCrcKnown_IsTheSame) {
  for (const auto& golden : kGoldenFrames) {
    const ParsedFrame frame = Parse(golden);
    const size_t length = frame.datagram.size() - kIcrcLength;
    for (size_t begin = kBthLength; begin < length; ++begin) {
      for (size_t end = begin + 1; end <= length; ++end) {
        std::vector<uint8_t> sealed = frame.datagram;
        std::memset(sealed.data() + length, 0, kIcrcLength);
        KnownCrc known{begin, end - begin, 0};
        known.crc = CrcUpdate(0, std::span(sealed).subspan(begin, end - begin));
        // The bytes themselves must not be read any more.
        std::memset(sealed.data() + begin, 0xA5, end - begin);
        SealIcrc(PathOf(frame.meta), frame.meta.ip_id, sealed.data(), length, known);
        ASSERT_TRUE(std::equal(sealed.begin() + static_cast<ptrdiff_t>(length), sealed.end(),
                               frame.datagram.begin() + static_cast<ptrdiff_t>(length)))
            << golden.name << ' ' << begin << ' ' << end;
      }
      if (length > 100) begin += 16;
    }
  }
}

TEST(SealIcrc, KnownPartOutside_IsOurBug) {
  ParsedFrame frame = Parse(testing::kRcSendOnlyFrame);
  const size_t length = frame.datagram.size() - kIcrcLength;
  const std::vector<uint8_t> recorded = frame.datagram;
  for (const KnownCrc known :
       {KnownCrc{0, 4, 1}, KnownCrc{length, 1, 1}, KnownCrc{kBthLength, ~size_t{0}, 1}}) {
    const auto seal = [&] {
      SealIcrc(PathOf(frame.meta), frame.meta.ip_id, frame.datagram.data(), length, known);
    };
#ifdef NDEBUG
    std::memset(frame.datagram.data() + length, 0, kIcrcLength);
    seal();
    EXPECT_EQ(frame.datagram, recorded) << known.offset;
#else
    EXPECT_DEATH(seal(), "seal-known-range");
#endif
  }
}

}  // namespace
}  // namespace rocegw::wire
