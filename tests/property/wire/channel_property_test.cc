// SPDX-License-Identifier: Apache-2.0
// Random channel extensions through encode and decode; random bytes through decode.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"
#include "tests/support/random.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;
using rocegw::testing::Random;
using rocegw::testing::TestSeed;

// Returns any valid frame by the rules of docs/develop/wire_format.md.
ChannelFrame SomeFrame(Random& random, size_t& payload) {
  ChannelFrame f;
  f.kind = static_cast<FrameKind>(random.Below(11));
  f.epoch = random.Value<uint16_t>();
  f.flags = random.Coin() ? kFrameAckNow : 0;
  payload = 0;
  if (f.kind == FrameKind::kVoid) return f;
  f.tenant = random.Value<uint32_t>();
  f.destination = Qpn{static_cast<uint32_t>(random.Between(2, 0xFFFFFE))};
  f.source = Qpn{static_cast<uint32_t>(random.Between(2, 0xFFFFFE))};
  f.message = random.Value<uint32_t>();
  if (f.kind != FrameKind::kReadResponse && f.kind != FrameKind::kAtomicResult)
    f.attempt = random.Value<uint8_t>();
  const auto flag = [&](uint8_t bits) {
    if (random.Coin()) f.flags |= bits;
  };
  const bool send = f.kind == FrameKind::kSend;
  const bool write = f.kind == FrameKind::kWrite;
  if (send || write || f.kind == FrameKind::kReadResponse) {
    payload = random.Between(1, 4096);
    const size_t more = random.Coin() ? 0 : random.Below((1u << 31) - 8192);
    f.offset = random.Value<uint32_t>() % ((1u << 31) - 4096 - static_cast<uint32_t>(more));
    f.length = static_cast<uint32_t>(f.offset + payload + more);
    if (random.Below(10) == 0) f.offset = f.length = 0, payload = 0;
    if (f.offset + payload == f.length) f.flags |= kFrameLast;
    flag(kFrameRelaxed);
  } else if (f.kind == FrameKind::kReply) {
    f.syndrome = random.Coin()   ? 0x1F
                 : random.Coin() ? static_cast<uint8_t>(random.Between(0x20, 0x5F))
                                 : 0x62;
    flag(kFrameRelaxed);
  } else {
    f.flags |= kFrameLast;
  }
  if (send || write) {
    flag(kFrameImmediate);
    if (send || f.has(kFrameImmediate)) {
      flag(kFrameSolicited);
      f.receive = random.Value<uint32_t>();
    }
    if (f.has(kFrameImmediate)) f.immediate = random.Value<uint32_t>();
    if (send && !f.has(kFrameImmediate) && random.Coin()) {
      f.flags |= kFrameInvalidate;
      f.invalidate_rkey = random.Value<uint32_t>();
    }
  }
  const bool flush = f.kind == FrameKind::kFlush;
  const bool atomic_write = f.kind == FrameKind::kAtomicWrite;
  const bool operates = f.kind == FrameKind::kFetchOperate;
  const bool atomic =
      operates || f.kind == FrameKind::kCompareSwap || f.kind == FrameKind::kFetchAdd;
  const bool read = f.kind == FrameKind::kReadRequest;
  const bool placement = flush || atomic_write;
  if (send || write || atomic || read || placement) flag(kFrameOrdered);
  if (atomic || placement) flag(kFrameRelaxed);
  if ((atomic || read) && random.Coin()) {
    f.flags |= kFrameEndpoint;
    f.receive = random.Value<uint32_t>();
  }
  if (write || atomic || read || placement) {
    f.address = random.Bits();
    f.rkey = random.Value<uint32_t>();
  }
  if (atomic_write) f.length = 8, payload = 8;
  if (flush) f.feth = static_cast<uint32_t>(random.Below(64));
  if (read || flush) f.length = random.Value<uint32_t>() >> 1;
  if (operates) {
    const uint64_t operations = static_cast<uint64_t>(wire::AtomicOperation::kCount) - 1;
    f.operation = static_cast<wire::AtomicOperation>(1 + random.Below(operations));
  }
  if (atomic && f.operation != wire::AtomicOperation::kLoad) f.swap_or_add = random.Bits();
  if (f.kind == FrameKind::kCompareSwap) f.compare = random.Bits();
  if (f.kind == FrameKind::kAtomicResult) f.original = random.Bits();
  return f;
}

bool Same(const ChannelFrame& a, const ChannelFrame& b) {
  return a.kind == b.kind && a.flags == b.flags && a.epoch == b.epoch && a.tenant == b.tenant &&
         a.destination == b.destination && a.source == b.source && a.syndrome == b.syndrome &&
         a.attempt == b.attempt && a.message == b.message && a.offset == b.offset &&
         a.length == b.length && a.receive == b.receive && a.address == b.address &&
         a.rkey == b.rkey && a.immediate == b.immediate && a.invalidate_rkey == b.invalidate_rkey &&
         a.feth == b.feth && a.operation == b.operation && a.swap_or_add == b.swap_or_add &&
         a.compare == b.compare && a.original == b.original;
}

TEST(ChannelHeader, AnyValidFrame_SurvivesARoundTrip) {
  Random random(TestSeed(71));
  int kinds[11] = {};
  for (int round = 0; round < 40000; ++round) {
    size_t payload = 0;
    const ChannelFrame f = SomeFrame(random, payload);
    ASSERT_EQ(ValidateFrame(f, payload), DropReason::kNone)
        << metrics::DropReasonName(ValidateFrame(f, payload)) << " kind "
        << static_cast<int>(f.kind);
    std::vector<uint8_t> bytes(kMaxFrameLength);
    const size_t length = EncodeFrame(f, bytes.data());
    ASSERT_EQ(length, FrameLength(f.kind, f.flags));
    bytes.resize(length);
    const std::vector<uint8_t> data = random.Bytes(payload);
    bytes.insert(bytes.end(), data.begin(), data.end());
    ChannelFrame out;
    std::span<const uint8_t> rest;
    ASSERT_EQ(DecodeFrame(bytes, out, rest), DropReason::kNone);
    ASSERT_TRUE(Same(f, out)) << static_cast<int>(f.kind);
    ASSERT_TRUE(std::ranges::equal(rest, data));
    ++kinds[static_cast<size_t>(f.kind)];
  }
  for (const int count : kinds) EXPECT_GT(count, 1000);
}

// Every header byte matters: changing one changes the value or makes the header invalid.
TEST(ChannelHeader, AnyChangedByte_IsSeen) {
  Random random(TestSeed(72));
  for (int round = 0; round < 40000; ++round) {
    size_t payload = 0;
    const ChannelFrame f = SomeFrame(random, payload);
    std::vector<uint8_t> bytes(kMaxFrameLength);
    bytes.resize(EncodeFrame(f, bytes.data()));
    const size_t at = random.Below(bytes.size());
    bytes.resize(bytes.size() + payload);
    bytes[at] ^= static_cast<uint8_t>(random.Between(1, 255));
    ChannelFrame out;
    std::span<const uint8_t> rest;
    if (DecodeFrame(bytes, out, rest) != DropReason::kNone) continue;
    ASSERT_FALSE(Same(f, out)) << "byte " << at << " of kind " << static_cast<int>(f.kind);
  }
}

// A header that decodes from random bytes encodes to the same bytes.
TEST(ChannelHeader, RandomBytes_AreRefusedOrCanonical) {
  Random random(TestSeed(73));
  int taken[3] = {};
  for (int round = 0; round < 300000; ++round) {
    std::vector<uint8_t> bytes = random.Bytes(random.Below(100));
    // Mostly zero, so that reserved fields and limits are hit sometimes.
    for (uint8_t& byte : bytes) {
      if (random.Below(4) != 0) byte = 0;
    }
    if (!bytes.empty()) bytes[0] = static_cast<uint8_t>(0x10 | (bytes[0] & 0x0F));
    ChannelFrame frame;
    std::span<const uint8_t> rest;
    if (DecodeFrame(bytes, frame, rest) == DropReason::kNone) {
      uint8_t again[kMaxFrameLength];
      const size_t length = EncodeFrame(frame, again);
      ASSERT_EQ(length + rest.size(), bytes.size());
      ASSERT_TRUE(std::equal(again, again + length, bytes.begin()));
      ++taken[0];
    }
    ChannelAck ack;
    if (DecodeAck(bytes, ack) == DropReason::kNone) {
      std::vector<uint8_t> again(bytes.size());
      ASSERT_EQ(EncodeAck(ack, again.data()), bytes.size());
      ASSERT_EQ(again, bytes);
      ++taken[1];
    }
    if (bytes.size() < kChannelControlLength) continue;
    const bool tagged = random.Below(2) == 0;
    const bool seals = tagged && random.Below(2) == 0;
    const size_t sequence_at = kChannelControlLength + (seals ? kSealOfferLength : 0);
    bytes.resize(sequence_at + (tagged ? kSequenceLength + kTagLength : 0));
    bytes[1] = static_cast<uint8_t>((tagged ? kControlTagged : 0) | (seals ? kControlSeals : 0));
    if (tagged) bytes[sequence_at + 7] = 1;
    if (seals) {
      bytes[0] &= 0xF1;  // open or opened
      bytes[kChannelControlLength + kSaltLength] &= 1;
      for (size_t i = 1; i < 4; ++i) bytes[kChannelControlLength + kSaltLength + i] = 0;
    }
    bytes[2] = bytes[14];
    bytes[3] = bytes[15];
    ChannelControl control;
    if (DecodeControl(bytes, control) == DropReason::kNone) {
      std::vector<uint8_t> again(bytes.size());
      ASSERT_EQ(EncodeControl(control, again.data()), bytes.size());
      ASSERT_EQ(again, bytes);
      ++taken[2];
    }
  }
  for (const int count : taken) EXPECT_GT(count, 0);
}

// Any frames that fit a bundle come out as they went in, and each changed byte of the entries'
// headers is seen.
TEST(ChannelBundle, AnyFrames_SurviveARoundTrip) {
  Random random(TestSeed(74));
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::vector<uint8_t>> datagrams;
    std::vector<uint8_t> bundle(kBthLength + kMaxBundle);
    size_t length = 0;
    while (datagrams.size() < 2 || random.Below(8) != 0) {
      size_t payload = 0;
      const ChannelFrame frame = SomeFrame(random, payload);
      Headers headers;
      headers.bth.opcode = Opcode::kChannelFrame;
      headers.bth.psn = Psn(random.Value<uint32_t>());
      headers.bth.pad_count = static_cast<uint8_t>(-payload & 3);
      std::vector<uint8_t> one(kBthLength + kMaxFrameLength);
      one.resize(EncodeHeaders(headers, one.data()) + EncodeFrame(frame, one.data() + kBthLength));
      const std::vector<uint8_t> data = random.Bytes(payload);
      one.insert(one.end(), data.begin(), data.end());
      one.resize(one.size() + headers.bth.pad_count);
      const size_t most = kBthLength + kMaxBundle - (length == 0 ? 1000 : 0);
      if (length + EntryLength(one) + kBthLength > most) {
        if (datagrams.size() < 2) continue;
        break;
      }
      if (length == 0) {
        std::copy(one.begin(), one.end(), bundle.begin());
        length = BeginBundle(bundle.data(), one.size());
      } else {
        length = AppendToBundle(bundle.data(), length, one);
      }
      datagrams.push_back(one);
    }
    const auto content = std::span<const uint8_t>(bundle).subspan(kBthLength, length - kBthLength);
    ASSERT_EQ(CheckBundle(content), DropReason::kNone);
    const auto is_the_same = [&] {
      std::span<const uint8_t> rest = content;
      BundleEntry entry;
      for (const std::vector<uint8_t>& datagram : datagrams) {
        std::vector<uint8_t> alone;
        if (!TakeEntry(rest, entry)) return false;
        const size_t pad = datagram[1] >> 4 & 3;
        if (entry.body.size() != datagram.size() - kBthLength - pad) return false;
        alone.resize(UnbundleTo(bundle, entry, alone));
        if (!std::equal(alone.begin() + kBthLength, alone.end(), datagram.begin() + kBthLength,
                        datagram.end()) ||
            entry.psn.value !=
                (Psn(uint32_t{datagram[9]} << 16 | uint32_t{datagram[10]} << 8 | datagram[11]))
                    .value) {
          return false;
        }
      }
      return rest.empty();
    };
    ASSERT_TRUE(is_the_same());
    // The header of a random entry.
    size_t at = kBthLength;
    for (size_t skip = random.Below(datagrams.size()), i = 0; i < skip; ++i)
      at += EntryLength(datagrams[i]);
    bundle[at + random.Below(kBundleEntryLength)] ^= static_cast<uint8_t>(random.Between(1, 255));
    if (CheckBundle(content) == DropReason::kNone && bundle[at] == 0xC0) {
      ASSERT_FALSE(is_the_same()) << at;
    }
  }
}

}  // namespace
}  // namespace rocegw::wire
