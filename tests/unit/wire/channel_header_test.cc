// SPDX-License-Identifier: Apache-2.0
// Channel extensions against hand-written bytes, and every reason for a refusal.
#include "gateway/wire/channel_header.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/describe/describe.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;
using metrics::DropReasonName;
using Octets = std::vector<uint8_t>;

Octets FromHex(std::string_view hex) {
  Octets bytes;
  for (size_t i = 0; i < hex.size(); ++i) {
    if (hex[i] == ' ') continue;
    bytes.push_back(static_cast<uint8_t>(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16)));
    ++i;
  }
  return bytes;
}

Octets Encoded(const ChannelFrame& frame, size_t payload = 0) {
  Octets bytes(kMaxFrameLength);
  bytes.resize(EncodeFrame(frame, bytes.data()));
  bytes.resize(bytes.size() + payload, 0xD5);
  return bytes;
}
Octets Encoded(const ChannelAck& ack) {
  Octets bytes(kChannelAckLength + kMaxBitmapWords * 4);
  bytes.resize(EncodeAck(ack, bytes.data()));
  return bytes;
}
Octets Encoded(const ChannelControl& control) {
  Octets bytes(kChannelControlLength);
  EXPECT_EQ(EncodeControl(control, bytes.data()), kChannelControlLength);
  return bytes;
}

// Returns valid values for a frame of this kind; data kinds: one frame with 100 of 4100 bytes, the
// last.
ChannelFrame FrameOf(FrameKind kind) {
  ChannelFrame f;
  f.kind = kind;
  f.epoch = 0xE1E2;
  if (kind == FrameKind::kVoid) return f;
  f.tenant = 0x01020304;
  f.destination = Qpn{0x0A0B0C};
  f.source = Qpn{0x1A1B1C};
  f.message = 0x21222324;
  const bool data =
      kind == FrameKind::kSend || kind == FrameKind::kWrite || kind == FrameKind::kReadResponse;
  if (data) {
    f.offset = 4000;
    f.length = 4100;
  }
  if (kind == FrameKind::kReadRequest || kind == FrameKind::kFlush) f.length = 0x00100000;
  if (kind == FrameKind::kFlush) f.feth = 0x11;
  if (kind == FrameKind::kAtomicWrite) f.length = 8;
  if (kind != FrameKind::kReply) f.flags = kFrameLast;
  if (kind == FrameKind::kReply) f.syndrome = 0x6E - 0x0C;
  if (kind == FrameKind::kSend) f.receive = 0x31323334;
  if (FrameLength(kind, 0) >= 48) {
    f.address = 0x4142434445464748;
    f.rkey = 0x51525354;
  }
  if (FrameLength(kind, 0) == 64) f.swap_or_add = 0x6162636465666768;
  if (kind == FrameKind::kFetchOperate) f.operation = AtomicOperation::kXor;
  if (kind == FrameKind::kCompareSwap) f.compare = 0x7172737475767778;
  if (kind == FrameKind::kAtomicResult) f.original = 0x8182838485868788;
  return f;
}

size_t PayloadOf(const ChannelFrame& f) {
  const bool asks = f.kind == FrameKind::kReadRequest || f.kind == FrameKind::kFlush;
  return asks ? 0 : f.length - f.offset;
}

DropReason ReasonOf(const ChannelFrame& frame, size_t payload) {
  const Octets bytes = Encoded(frame, payload);
  ChannelFrame out;
  std::span<const uint8_t> rest;
  return DecodeFrame(bytes, out, rest);
}

constexpr FrameKind kAllKinds[] = {
    FrameKind::kVoid,        FrameKind::kSend,         FrameKind::kWrite,
    FrameKind::kReadRequest, FrameKind::kReadResponse, FrameKind::kCompareSwap,
    FrameKind::kFetchAdd,    FrameKind::kAtomicResult, FrameKind::kReply,
    FrameKind::kFlush,       FrameKind::kAtomicWrite,  FrameKind::kFetchOperate};

TEST(ChannelFrame, EveryKind_HasTheseBytes) {
  const std::string base = "01020304 0A0B0C00 1A1B1C00 21222324 ";
  const std::string key = "4142434445464748 51525354 00000000";
  const std::string swap = " 6162636465666768 ";
  const std::string expected[] = {
      "1000E1E2 00000000 00000000 00000000 00000000 00000000 00000000 00000000",
      "1104E1E2" + base + "00000FA0 00001004 31323334",
      "1204E1E2" + base + "00000FA0 00001004 00000000" + key,
      "1304E1E2" + base + "00000000 00100000 00000000" + key,
      "1404E1E2" + base + "00000FA0 00001004 00000000",
      "1504E1E2" + base + "00000000 00000000 00000000" + key + swap + "7172737475767778",
      "1604E1E2" + base + "00000000 00000000 00000000" + key + swap + "0000000000000000",
      "1704E1E2" + base + "00000000 00000000 00000000 8182838485868788",
      "1800E1E2 01020304 0A0B0C62 1A1B1C00 21222324 00000000 00000000 00000000",
      "1904E1E2" + base + "00000000 00100000 00000000 4142434445464748 51525354 00000011",
      "1A04E1E2" + base + "00000000 00000008 00000000" + key,
      "1B04E1E2" + base + "00000000 00000000 00000000 4142434445464748 51525354 00000006" + swap +
          "0000000000000000",
  };
  for (const FrameKind kind : kAllKinds) {
    const auto number = static_cast<size_t>(kind);
    EXPECT_EQ(Encoded(FrameOf(kind)), FromHex(expected[number])) << number;
  }
}

TEST(ChannelFrame, ImmediateAndInvalidate_StandWhereTheFlagSays) {
  ChannelFrame f = FrameOf(FrameKind::kSend);
  f.flags = kFrameLast | kFrameImmediate | kFrameSolicited;
  f.immediate = 0x04030201;  // in memory: 01 02 03 04
  EXPECT_EQ(Encoded(f), FromHex("1107E1E2 01020304 0A0B0C00 1A1B1C00 21222324 00000FA0 00001004 "
                                "31323334 01020304"));
  f.flags = kFrameLast | kFrameInvalidate | kFrameOrdered | kFrameAckNow | kFrameRelaxed;
  f.invalidate_rkey = 0x0A0B0C0D;
  EXPECT_EQ(Encoded(f), FromHex("117CE1E2 01020304 0A0B0C00 1A1B1C00 21222324 00000FA0 00001004 "
                                "31323334 0A0B0C0D"));
  ChannelFrame w = FrameOf(FrameKind::kWrite);
  w.flags = kFrameLast | kFrameImmediate;
  w.immediate = 0x04030201;
  w.receive = 9;
  EXPECT_EQ(Encoded(w), FromHex("1205E1E2 01020304 0A0B0C00 1A1B1C00 21222324 00000FA0 00001004 "
                                "00000009 4142434445464748 51525354 01020304"));
}

TEST(ChannelFrame, EveryKind_DecodesToWhatWasEncoded) {
  for (const FrameKind kind : kAllKinds) {
    const ChannelFrame f = FrameOf(kind);
    const Octets bytes = Encoded(f, PayloadOf(f));
    ChannelFrame out;
    std::span<const uint8_t> payload;
    ASSERT_EQ(DropReasonName(DecodeFrame(bytes, out, payload)), std::string("none"))
        << static_cast<int>(kind);
    EXPECT_EQ(Encoded(out, payload.size()), bytes) << static_cast<int>(kind);
    EXPECT_EQ(payload.size(), PayloadOf(f));
    EXPECT_EQ(payload.data(), bytes.data() + FrameLength(kind, f.flags));
  }
}

TEST(ChannelFrame, EveryShorterOne_IsTruncated) {
  for (const FrameKind kind : kAllKinds) {
    ChannelFrame f = FrameOf(kind);
    if (kind == FrameKind::kSend) f.flags |= kFrameInvalidate;
    const Octets bytes = Encoded(f);
    for (size_t size = 0; size < bytes.size(); ++size) {
      ChannelFrame out;
      std::span<const uint8_t> payload;
      EXPECT_EQ(DecodeFrame(std::span(bytes).first(size), out, payload), DropReason::k_truncated)
          << static_cast<int>(kind) << " " << size;
    }
  }
}

TEST(ChannelFrame, VersionAndKind_AreChecked) {
  const ChannelFrame f = FrameOf(FrameKind::kSend);
  for (int first = 0; first < 256; ++first) {
    Octets bytes = Encoded(f, 100);
    bytes[0] = static_cast<uint8_t>(first);
    bytes.resize(kMaxFrameLength, 0);
    ChannelFrame out;
    std::span<const uint8_t> payload;
    const DropReason reason = DecodeFrame(bytes, out, payload);
    if (first >> 4 != 1) {
      EXPECT_EQ(reason, DropReason::k_channel_version) << first;
    } else if ((first & 15) > 11) {
      EXPECT_EQ(reason, DropReason::k_channel_kind) << first;
    } else {
      EXPECT_NE(reason, DropReason::k_channel_kind) << first;
      EXPECT_NE(reason, DropReason::k_channel_version) << first;
    }
  }
}

// Written independently: the flags (beyond the last, bit 2) that a kind may have.
TEST(ChannelFrame, Flags_AreThoseOfTheKind) {
  const uint8_t allowed[] = {0x10, 0xFB, 0xBB, 0xB8, 0x30, 0xB8,
                             0xB8, 0x10, 0x30, 0x38, 0x38, 0xB8};
  for (const FrameKind kind : kAllKinds) {
    for (int flags = 0; flags < 256; ++flags) {
      ChannelFrame f = FrameOf(kind);
      f.flags ^= static_cast<uint8_t>(flags);
      const int more = f.flags & ~kFrameLast;
      bool fits = (more & ~allowed[static_cast<size_t>(kind)]) == 0 && (flags & kFrameLast) == 0;
      if ((more & 0x41) == 0x41 || (more & 0xC0) == 0xC0) fits = false;
      if (kind == FrameKind::kWrite && (more & 3) == 2) fits = false;
      EXPECT_EQ(ReasonOf(f, PayloadOf(f)), fits ? DropReason::kNone : DropReason::k_channel_flags)
          << static_cast<int>(kind) << " flags " << flags;
    }
  }
}

TEST(ChannelFrame, ReadsOfEndpoints_CarryTheirKey) {
  ChannelFrame f = FrameOf(FrameKind::kReadRequest);
  f.flags = kFrameLast | kFrameRelaxed | kFrameEndpoint;
  f.receive = 0x31323334;
  EXPECT_EQ(Encoded(f), FromHex("13A4E1E2 01020304 0A0B0C00 1A1B1C00 21222324 00000000 00100000 "
                                "31323334 4142434445464748 51525354 00000000"));
  EXPECT_EQ(ReasonOf(f, 0), DropReason::kNone);
  f.flags = kFrameLast | kFrameRelaxed;
  EXPECT_EQ(ReasonOf(f, 0), DropReason::k_channel_field) << "of nobody's";
}

TEST(ChannelFrame, LastFlag_IsTheEndOfTheMessage) {
  for (const FrameKind kind : {FrameKind::kSend, FrameKind::kWrite, FrameKind::kReadResponse}) {
    ChannelFrame f = FrameOf(kind);
    EXPECT_EQ(ReasonOf(f, 99), DropReason::k_channel_flags);
    f.flags = 0;
    EXPECT_EQ(ReasonOf(f, 99), DropReason::kNone);
    EXPECT_EQ(ReasonOf(f, 100), DropReason::k_channel_flags);
  }
}

TEST(ChannelFrame, Payload_LiesInItsMessage) {
  for (const FrameKind kind : {FrameKind::kSend, FrameKind::kWrite, FrameKind::kReadResponse}) {
    ChannelFrame f = FrameOf(kind);
    EXPECT_EQ(ReasonOf(f, 101), DropReason::k_bad_length);
    f.offset = 4101;
    EXPECT_EQ(ReasonOf(f, 100), DropReason::k_bad_length);
    f.offset = 0xFFFFFFFF;
    EXPECT_EQ(ReasonOf(f, 100), DropReason::k_bad_length);
    f.offset = 4100;
    EXPECT_EQ(ReasonOf(f, 0), DropReason::k_bad_length);
    f.offset = 0;
    f.flags = 0;
    EXPECT_EQ(ReasonOf(f, 0), DropReason::k_bad_length);
    EXPECT_EQ(ReasonOf(f, 4096), DropReason::kNone);
    f.length = 8192;
    EXPECT_EQ(ReasonOf(f, 4097), DropReason::k_bad_length);
    f.length = 0x80000000;
    EXPECT_EQ(ReasonOf(f, 4096), DropReason::kNone);
    f.length = 0x80000001;
    EXPECT_EQ(ReasonOf(f, 4096), DropReason::k_channel_field);
    f.length = 0;
    f.flags = kFrameLast;
    EXPECT_EQ(ReasonOf(f, 0), DropReason::kNone);
  }
  for (const FrameKind kind :
       {FrameKind::kVoid, FrameKind::kReadRequest, FrameKind::kCompareSwap, FrameKind::kFetchAdd,
        FrameKind::kAtomicResult, FrameKind::kReply, FrameKind::kFlush, FrameKind::kFetchOperate}) {
    EXPECT_EQ(ReasonOf(FrameOf(kind), 4), DropReason::k_bad_length) << static_cast<int>(kind);
  }
}

TEST(ChannelFrame, AtomicWrite_IsEightBytesInOneFrame) {
  ChannelFrame f = FrameOf(FrameKind::kAtomicWrite);
  EXPECT_EQ(ReasonOf(f, 8), DropReason::kNone);
  EXPECT_EQ(ReasonOf(f, 4), DropReason::k_channel_flags) << "there is more of it";
  f.length = 9;
  EXPECT_EQ(ReasonOf(f, 9), DropReason::k_bad_length);
  f.length = 8;
  f.offset = 4;
  EXPECT_EQ(ReasonOf(f, 4), DropReason::k_bad_length);
}

TEST(ChannelFrame, ForbiddenField_IsRefused) {
  struct Case {
    const char* what;
    std::vector<FrameKind> kinds;
    std::function<void(ChannelFrame&)> spoil;
  };
  using enum FrameKind;
  const std::vector<FrameKind> all_but_void = {
      kSend,         kWrite, kReadRequest, kReadResponse, kCompareSwap, kFetchAdd,
      kAtomicResult, kReply, kFlush,       kAtomicWrite,  kFetchOperate};
  const std::vector<FrameKind> one = {kVoid,         kReadRequest, kCompareSwap, kFetchAdd,
                                      kAtomicResult, kReply,       kFlush,       kFetchOperate};
  const Case cases[] = {
      {"tenant", {kVoid}, [](ChannelFrame& f) { f.tenant = 1; }},
      {"destination", {kVoid}, [](ChannelFrame& f) { f.destination = Qpn{2}; }},
      {"source", {kVoid}, [](ChannelFrame& f) { f.source = Qpn{2}; }},
      {"message", {kVoid}, [](ChannelFrame& f) { f.message = 1; }},
      {"no destination", all_but_void, [](ChannelFrame& f) { f.destination = Qpn{0}; }},
      {"to the GSI", all_but_void, [](ChannelFrame& f) { f.destination = Qpn{1}; }},
      {"multicast", all_but_void, [](ChannelFrame& f) { f.destination = Qpn{0xFFFFFF}; }},
      {"no source", all_but_void, [](ChannelFrame& f) { f.source = Qpn{0}; }},
      {"from the GSI", all_but_void, [](ChannelFrame& f) { f.source = Qpn{1}; }},
      {"from multicast", all_but_void, [](ChannelFrame& f) { f.source = Qpn{0xFFFFFF}; }},
      {"offset", one, [](ChannelFrame& f) { f.offset = 1; }},
      {"length",
       {kVoid, kCompareSwap, kFetchAdd, kFetchOperate, kAtomicResult, kReply},
       [](ChannelFrame& f) { f.length = 8; }},
      {"receive",
       {kVoid, kWrite, kReadRequest, kReadResponse, kCompareSwap, kFetchAdd, kAtomicResult, kReply,
        kFlush, kAtomicWrite, kFetchOperate},
       [](ChannelFrame& f) { f.receive = 1; }},
      {"syndrome",
       {kVoid, kSend, kWrite, kReadRequest, kReadResponse, kCompareSwap, kFetchAdd, kAtomicResult,
        kFlush, kAtomicWrite, kFetchOperate},
       [](ChannelFrame& f) { f.syndrome = 0x1F; }},
      {"credits", {kReply}, [](ChannelFrame& f) { f.syndrome = 0; }},
      {"attempt", {kVoid, kReadResponse, kAtomicResult}, [](ChannelFrame& f) { f.attempt = 1; }},
      {"NAK 5", {kReply}, [](ChannelFrame& f) { f.syndrome = 0x65; }},
      {"bit 7", {kReply}, [](ChannelFrame& f) { f.syndrome = 0x9F; }},
      {"immediate", {kWrite}, [](ChannelFrame& f) { f.immediate = 1; }},
      {"compare", {kFetchAdd, kFetchOperate}, [](ChannelFrame& f) { f.compare = 1; }},
      {"no operation",
       {kFetchOperate},
       [](ChannelFrame& f) { f.operation = AtomicOperation::kNone; }},
      {"unknown operation",
       {kFetchOperate},
       [](ChannelFrame& f) { f.operation = AtomicOperation::kCount; }},
      {"operand of a load",
       {kFetchOperate},
       [](ChannelFrame& f) { f.operation = AtomicOperation::kLoad; }},
      {"unknown level", {kFlush}, [](ChannelFrame& f) { f.feth |= 0x40; }},
      {"READ of too much", {kReadRequest, kFlush}, [](ChannelFrame& f) { f.length = 0x80000001; }},
  };
  for (const Case& c : cases) {
    for (const FrameKind kind : c.kinds) {
      ChannelFrame f = FrameOf(kind);
      const size_t payload = PayloadOf(f);
      c.spoil(f);
      EXPECT_EQ(ReasonOf(f, payload), DropReason::k_channel_field)
          << c.what << " " << static_cast<int>(kind);
    }
  }
}

TEST(ChannelFrame, Attempt_IsBehindTheSource) {
  ChannelFrame f = FrameOf(FrameKind::kReply);
  f.attempt = 0xA7;
  f.syndrome = kSyndromeNotReady | 14;
  EXPECT_EQ(Encoded(f), FromHex("1800E1E2 01020304 0A0B0C4E 1A1B1CA7 21222324 00000000 00000000 "
                                "00000000"));
  EXPECT_EQ(ReasonOf(f, 0), DropReason::kNone);
  EXPECT_TRUE(f.not_ready());
}

TEST(ChannelFrame, ReplySyndromes_AreThoseOfAnAethAndNotReady) {
  int taken = 0;
  for (int syndrome = 0; syndrome < 256; ++syndrome) {
    ChannelFrame f = FrameOf(FrameKind::kReply);
    f.syndrome = static_cast<uint8_t>(syndrome);
    if (ReasonOf(f, 0) == DropReason::kNone) ++taken;
  }
  // ACK, receiver and endpoint not ready with their timers, NAKs.
  EXPECT_EQ(taken, 1 + 32 + 32 + 5);
}

TEST(ChannelFrame, ReservedBytes_MustBeZero) {
  const auto spoilt = [](FrameKind kind, size_t at) {
    const ChannelFrame f = FrameOf(kind);
    Octets bytes = Encoded(f, PayloadOf(f));
    bytes[at] ^= 0x40;
    ChannelFrame out;
    std::span<const uint8_t> payload;
    return DecodeFrame(bytes, out, payload);
  };
  for (const FrameKind kind : {FrameKind::kReadRequest, FrameKind::kCompareSwap,
                               FrameKind::kFetchAdd, FrameKind::kAtomicWrite}) {
    for (size_t at = 44; at < 48; ++at) EXPECT_EQ(spoilt(kind, at), DropReason::k_channel_field);
  }
}

TEST(ChannelFrame, FetchOperate_HasEachOperation_InItsFourthWord) {
  for (uint8_t number = 1; number < static_cast<uint8_t>(AtomicOperation::kCount); ++number) {
    ChannelFrame f = FrameOf(FrameKind::kFetchOperate);
    f.operation = static_cast<AtomicOperation>(number);
    if (f.operation == AtomicOperation::kLoad) f.swap_or_add = 0;
    const Octets bytes = Encoded(f);
    EXPECT_EQ(bytes[47], number);
    ChannelFrame out;
    std::span<const uint8_t> payload;
    ASSERT_EQ(DecodeFrame(bytes, out, payload), DropReason::kNone);
    EXPECT_EQ(out.operation, f.operation);
    EXPECT_STRNE(AtomicOperationName(f.operation), "?");
  }
  Octets bytes = Encoded(FrameOf(FrameKind::kFetchOperate));
  bytes[44] = 1;
  ChannelFrame out;
  std::span<const uint8_t> payload;
  EXPECT_EQ(DecodeFrame(bytes, out, payload), DropReason::k_channel_field);
}

ChannelAck SomeAck(uint16_t words) {
  ChannelAck ack;
  ack.epoch = 0xE1E2;
  ack.marked_bytes = 0x01020304;
  ack.hint = 0x11;
  ack.room = 0x212223;
  ack.held_ns = 0x31323334;
  ack.probe = 0x41424344;
  ack.words = words;
  ack.duplicates = 0x51;
  for (uint16_t i = 0; i < words; ++i) ack.bitmap[i] = 0x80000001u + (uint32_t{i} << 8);
  return ack;
}

TEST(ChannelAck, Bytes_AreThese) {
  EXPECT_EQ(Encoded(SomeAck(2)), FromHex("1000E1E2 01020304 11212223 31323334 41424344 00025100 "
                                         "80000001 80000101"));
  EXPECT_EQ(Encoded(SomeAck(0)), FromHex("1000E1E2 01020304 11212223 31323334 41424344 00005100"));
}

TEST(ChannelAck, EveryNumberOfWords_SurvivesARoundTrip) {
  for (uint16_t words = 0; words <= kMaxBitmapWords; ++words) {
    const Octets bytes = Encoded(SomeAck(words));
    ChannelAck out;
    ASSERT_EQ(DecodeAck(bytes, out), DropReason::kNone);
    ASSERT_EQ(out.arrived().size(), words);
    EXPECT_EQ(Encoded(out), bytes);
  }
}

TEST(ChannelAck, Malformed_IsRefused) {
  const Octets good = Encoded(SomeAck(2));
  ChannelAck out;
  const auto spoilt = [&](size_t at, uint8_t value) {
    Octets bytes = good;
    bytes[at] = value;
    return DecodeAck(bytes, out);
  };
  for (size_t size = 0; size < kChannelAckLength; ++size) {
    EXPECT_EQ(DecodeAck(std::span(good).first(size), out), DropReason::k_truncated);
  }
  for (size_t size = kChannelAckLength; size < good.size(); ++size) {
    EXPECT_EQ(DecodeAck(std::span(good).first(size), out), DropReason::k_bad_length);
  }
  Octets longer = good;
  longer.push_back(0);
  EXPECT_EQ(DecodeAck(longer, out), DropReason::k_bad_length);
  EXPECT_EQ(spoilt(0, 0x20), DropReason::k_channel_version);
  EXPECT_EQ(spoilt(0, 0x11), DropReason::k_channel_kind);
  for (int bit = 0; bit < 8; ++bit) {
    EXPECT_EQ(spoilt(1, static_cast<uint8_t>(1 << bit)), DropReason::k_channel_flags);
  }
  EXPECT_EQ(spoilt(23, 1), DropReason::k_channel_field);
  EXPECT_EQ(spoilt(21, 1), DropReason::k_bad_length);
  EXPECT_EQ(spoilt(21, 129), DropReason::k_channel_field);
  EXPECT_EQ(spoilt(20, 1), DropReason::k_channel_field);
}

constexpr ControlKind kAllControls[] = {
    ControlKind::kOpen,  ControlKind::kOpened, ControlKind::kRefused, ControlKind::kProbe,
    ControlKind::kClose, ControlKind::kClosed, ControlKind::kReset,   ControlKind::kRetry};

ChannelControl ControlOf(ControlKind kind) {
  ChannelControl c;
  c.kind = kind;
  if (kind != ControlKind::kRefused && kind != ControlKind::kRetry) c.channel = 0x0A0B0C;
  if (kind == ControlKind::kRefused || kind == ControlKind::kReset || kind == ControlKind::kClose) {
    c.reason = ChannelReason::kUnknownChannel;
  }
  c.epoch = 0x11121314;
  if (kind != ControlKind::kOpen) c.peer_epoch = 0x21222324;
  if (kind == ControlKind::kOpen || kind == ControlKind::kOpened) {
    c.initial_psn = Psn(0x313233);
    c.traffic_class = 0x6A;
    c.window = 0x001000;
    c.path = 3;
    c.features = 0x41424344;
    c.cc_kind = 2;
    c.checksum_mode = 1;
  }
  if (kind == ControlKind::kProbe) c.probe = 0x51525354;
  c.instance = 0x61626364;
  return c;
}

TEST(ChannelControl, EveryKind_HasTheseBytes) {
  const std::string set_up = "3132336A 00100003 41424344 02010000 00000000 61626364";
  const std::string nothing = "00000000 00000000 00000000 00000000 ";
  const std::string epochs = "11121314 21222324";
  const std::string expected[] = {
      "10000000 0A0B0C00 11121314 00000000" + set_up,
      "11002324 0A0B0C00" + epochs + set_up,
      "12002324 00000004" + epochs + nothing + "00000000 61626364",
      "13002324 0A0B0C00" + epochs + nothing + "51525354 61626364",
      "14002324 0A0B0C04" + epochs + nothing + "00000000 61626364",
      "15002324 0A0B0C00" + epochs + nothing + "00000000 61626364",
      "16002324 0A0B0C04" + epochs + nothing + "00000000 61626364",
      "17002324 00000000" + epochs + nothing + "00000000 61626364",
  };
  for (const ControlKind kind : kAllControls) {
    const Octets bytes = Encoded(ControlOf(kind));
    EXPECT_EQ(bytes, FromHex(expected[static_cast<size_t>(kind)])) << static_cast<int>(kind);
    ChannelControl out;
    ASSERT_EQ(DecodeControl(bytes, out), DropReason::kNone) << static_cast<int>(kind);
    EXPECT_EQ(Encoded(out), bytes);
  }
}

TEST(ChannelControl, Malformed_IsRefused) {
  for (const ControlKind kind : kAllControls) {
    const Octets good = Encoded(ControlOf(kind));
    ChannelControl out;
    const auto spoilt = [&](size_t at, uint8_t value) {
      Octets bytes = good;
      bytes[at] = value;
      return DecodeControl(bytes, out);
    };
    for (size_t size = 0; size < good.size(); ++size) {
      EXPECT_EQ(DecodeControl(std::span(good).first(size), out), DropReason::k_truncated);
    }
    Octets longer = good;
    longer.resize(44);
    EXPECT_EQ(DecodeControl(longer, out), DropReason::k_bad_length);
    EXPECT_EQ(spoilt(0, 0x0F), DropReason::k_channel_version);
    EXPECT_EQ(spoilt(0, 0x18), DropReason::k_channel_kind);
    EXPECT_EQ(spoilt(1, 1), DropReason::k_bad_length) << "no tag behind it";
    EXPECT_EQ(spoilt(1, 2), DropReason::k_channel_flags);
    EXPECT_EQ(spoilt(1, 0x80), DropReason::k_channel_flags);
    EXPECT_EQ(spoilt(3, 0xFF), DropReason::k_channel_field) << "epoch is not the peer's";
    EXPECT_EQ(spoilt(7, 10), DropReason::k_channel_field) << "unknown reason";
  }
}

TEST(ChannelControl, FieldOfAnotherKind_IsRefused) {
  using enum ControlKind;
  struct Case {
    const char* what;
    std::vector<ControlKind> kinds;
    std::function<void(ChannelControl&)> spoil;
  };
  const std::vector<ControlKind> later = {kRefused, kProbe, kClose, kClosed, kReset, kRetry};
  const Case cases[] = {
      {"reason",
       {kOpen, kOpened, kProbe, kClosed, kRetry},
       [](ChannelControl& c) { c.reason = ChannelReason::kIdle; }},
      {"no reason",
       {kRefused, kReset, kClose},
       [](ChannelControl& c) { c.reason = ChannelReason::kNone; }},
      {"channel", {kRefused, kRetry}, [](ChannelControl& c) { c.channel = 5; }},
      {"no channel",
       {kOpen, kOpened, kProbe, kClose, kClosed, kReset},
       [](ChannelControl& c) { c.channel = 0; }},
      {"GSI",
       {kOpen, kOpened, kProbe, kClose, kClosed, kReset},
       [](ChannelControl& c) { c.channel = 1; }},
      {"multicast",
       {kOpen, kOpened, kProbe, kClose, kClosed, kReset},
       [](ChannelControl& c) { c.channel = 0xFFFFFF; }},
      {"no cookie", {kRetry}, [](ChannelControl& c) { c.epoch = 0; }},
      {"probe",
       {kOpen, kOpened, kRefused, kClose, kClosed, kReset, kRetry},
       [](ChannelControl& c) { c.probe = 1; }},
      {"no probe", {kProbe}, [](ChannelControl& c) { c.probe = 0; }},
      {"no window", {kOpen, kOpened}, [](ChannelControl& c) { c.window = 0; }},
      {"window", later, [](ChannelControl& c) { c.window = 1; }},
      {"PSN", later, [](ChannelControl& c) { c.initial_psn = Psn(1); }},
      {"class", later, [](ChannelControl& c) { c.traffic_class = 1; }},
      {"path", later, [](ChannelControl& c) { c.path = 1; }},
      {"features", later, [](ChannelControl& c) { c.features = 1; }},
      {"cc", later, [](ChannelControl& c) { c.cc_kind = 1; }},
      {"checksum", later, [](ChannelControl& c) { c.checksum_mode = 1; }},
      {"worker", later, [](ChannelControl& c) { c.worker = 1; }},
  };
  for (const Case& c : cases) {
    for (const ControlKind kind : c.kinds) {
      ChannelControl control = ControlOf(kind);
      c.spoil(control);
      ChannelControl out;
      EXPECT_EQ(DecodeControl(Encoded(control), out), DropReason::k_channel_field)
          << c.what << " " << static_cast<int>(kind);
    }
  }
}

// Complete datagram around an extension.
struct Whole {
  Octets bytes;
  RxMeta meta;
  RxDatagram Rx() const { return {meta, bytes}; }
};
Whole Wrap(Opcode opcode, Octets body) {
  Headers headers;
  headers.bth.opcode = opcode;
  headers.bth.dest_qpn = Qpn{0x0C0FFE};
  headers.bth.psn = Psn(77);
  headers.bth.pad_count = static_cast<uint8_t>(-body.size() & 3);
  Whole whole;
  whole.bytes.resize(kBthLength);
  EncodeHeaders(headers, whole.bytes.data());
  whole.bytes.insert(whole.bytes.end(), body.begin(), body.end());
  whole.bytes.resize(whole.bytes.size() + headers.bth.pad_count + kIcrcLength);
  Path path;
  path.source = Gid::FromV4(0xC0000201);
  path.destination = Gid::FromV4(0xC0000202);
  SealIcrc(path, 5, whole.bytes.data(), whole.bytes.size() - kIcrcLength);
  whole.meta = {.source = path.source,
                .destination = path.destination,
                .source_port = path.source_port,
                .ip_id_known = true,
                .ip_id = 5};
  return whole;
}

TEST(ChannelPacket, Codec_LeavesTheExtensionAtTheFrontOfThePayload) {
  ChannelFrame f = FrameOf(FrameKind::kSend);
  f.length = 4097;
  const Octets body = Encoded(f, 97);
  const Whole whole = Wrap(Opcode::kChannelFrame, body);
  RxPacket packet;
  ASSERT_EQ(Decode(whole.Rx(), packet), DropReason::kNone);
  EXPECT_EQ(packet.traits->service, Service::kChannel);
  EXPECT_EQ(packet.headers.bth.dest_qpn, Qpn{0x0C0FFE});
  EXPECT_EQ(packet.headers.bth.pad_count, 3);
  EXPECT_EQ(Octets(packet.payload.begin(), packet.payload.end()), body);
}

TEST(ChannelPacket, LargestFrameOfEachKind_PassesTheCodec) {
  ChannelFrame f = FrameOf(FrameKind::kWrite);
  f.flags = 0;
  f.length = 9000;
  RxPacket packet;
  EXPECT_EQ(Decode(Wrap(Opcode::kChannelFrame, Encoded(f, 4096)).Rx(), packet), DropReason::kNone);
  EXPECT_EQ(Decode(Wrap(Opcode::kChannelFrame, Octets(4160)).Rx(), packet), DropReason::kNone);
  EXPECT_EQ(Decode(Wrap(Opcode::kChannelFrame, Octets(4161)).Rx(), packet),
            DropReason::k_bad_length);
}

TEST(ChannelPacket, DamagedByte_IsABadIcrc) {
  Whole whole = Wrap(Opcode::kChannelAck, Encoded(SomeAck(1)));
  whole.bytes[20] ^= 1;
  RxPacket packet;
  EXPECT_EQ(Decode(whole.Rx(), packet), DropReason::k_bad_icrc);
}

std::string Line(Opcode opcode, const Octets& body) {
  const std::string line = Describe(Wrap(opcode, body).Rx());
  const std::string front = "192.0.2.1>192.0.2.2 CH ";
  EXPECT_EQ(line.substr(0, front.size()), front);
  return line.substr(front.size());
}

TEST(ChannelPacket, Describe_IsOneLineEach) {
  const std::string bth = " qp=0x0c0ffe psn=77 ";
  const std::string ends = " epoch=0xe1e2 from=0x1a1b1c to=0x0a0b0c tenant=0x1020304 msg=555885348";
  ChannelFrame f = FrameOf(FrameKind::kSend);
  f.flags |= kFrameImmediate;
  f.immediate = 0x04030201;
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(f, 100)),
            "Frame" + bth + "SEND" + ends +
                " off=4000 len=4100 recv=825373492 imm last=0x01020304 payload=100");
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(FrameOf(FrameKind::kReadRequest))),
            "Frame" + bth + "READ" + ends +
                " len=1048576 va=0x4142434445464748 rkey=0x51525354 last payload=0");
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(FrameOf(FrameKind::kCompareSwap))),
            "Frame" + bth + "compare-swap" + ends +
                " va=0x4142434445464748 rkey=0x51525354 compare=0x7172737475767778 "
                "swap=0x6162636465666768 last payload=0");
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(FrameOf(FrameKind::kFlush))),
            "Frame" + bth + "FLUSH" + ends +
                " flush=0x11 len=1048576 va=0x4142434445464748 rkey=0x51525354 last payload=0");
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(FrameOf(FrameKind::kAtomicWrite), 8)),
            "Frame" + bth + "ATOMIC WRITE" + ends +
                " va=0x4142434445464748 rkey=0x51525354 last payload=8");
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(FrameOf(FrameKind::kFetchOperate))),
            "Frame" + bth + "fetch-operate" + ends +
                " va=0x4142434445464748 rkey=0x51525354 xor=0x6162636465666768 last payload=0");
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(FrameOf(FrameKind::kReply))),
            "Frame" + bth + "reply" + ends + " nak=remote-access payload=0");
  EXPECT_EQ(Line(Opcode::kChannelFrame, Encoded(FrameOf(FrameKind::kVoid))),
            "Frame" + bth + "void epoch=0xe1e2 payload=0");
  EXPECT_EQ(Line(Opcode::kChannelAck, Encoded(SomeAck(2))),
            "Ack" + bth +
                "epoch=0xe1e2 room=2171427 marked=16909060 hint=17 held=825373492ns "
                "duplicates=81 probe=1094861636 beyond=5/64");
  EXPECT_EQ(Line(Opcode::kChannelControl, Encoded(ControlOf(ControlKind::kOpened))),
            "Control" + bth +
                "opened from=0x0a0b0c epoch=0x11121314 peer-epoch=0x21222324 "
                "instance=0x61626364 first-psn=3224115 tclass=0x6a window=4096 path=3 "
                "features=0x41424344 cc=2 checksum=1");
  EXPECT_EQ(Line(Opcode::kChannelControl, Encoded(ControlOf(ControlKind::kReset))),
            "Control" + bth +
                "reset from=0x0a0b0c epoch=0x11121314 peer-epoch=0x21222324 "
                "instance=0x61626364 reason=unknown channel");
  Octets bad = Encoded(FrameOf(FrameKind::kReply));
  bad[0] = 0x1F;
  EXPECT_EQ(Line(Opcode::kChannelFrame, bad), "Frame" + bth + "malformed: channel_kind");
  bad[0] = 0x20;
  EXPECT_EQ(Line(Opcode::kChannelAck, bad), "Ack" + bth + "malformed: channel_version");
  EXPECT_EQ(Line(Opcode::kChannelControl, {}), "Control" + bth + "malformed: truncated");
}

}  // namespace
}  // namespace rocegw::wire
