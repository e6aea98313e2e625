// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/capture/capture_port.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/port/frame.h"
#include "gateway/port/pair_port.h"
#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"
#include "tests/support/network/port_fixture.h"

namespace rocegw::port {
namespace {

using rocegw::testing::IsTestPacket;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveAll;
using rocegw::testing::SendTestPacket;
using rocegw::testing::TestPath;

constexpr Qpn kQpn{0x12};

// A descriptor for the tap, and another one for the same bytes.
struct MemoryFile {
  UniqueFd tap{memfd_create("capture", MFD_CLOEXEC)};
  UniqueFd reader{dup(tap.get())};

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> all(static_cast<size_t>(lseek(reader.get(), 0, SEEK_END)));
    EXPECT_EQ(pread(reader.get(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all;
  }
};

// Sink that writes to a descriptor.
class FileSink final : public CaptureSink {
 public:
  explicit FileSink(UniqueFd fd) : fd_(std::move(fd)) {}
  Status Write(std::span<const uint8_t> bytes) override {
    if (write(fd_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()))
      return OkStatus();
    return {errno, "the disk is full"};
  }
  void End(const CaptureSummary& summary) override { ended = summary; }
  void Abort() override {}

  std::optional<CaptureSummary> ended;

 private:
  UniqueFd fd_;
};

uint32_t U32(std::span<const uint8_t> bytes, size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, &bytes[offset], sizeof value);
  return value;
}

struct CapturedPacket {
  uint32_t captured = 0;
  uint32_t original = 0;
  uint32_t flags = 0;
  uint32_t interface = 0;
  std::vector<uint8_t> frame;
};

// Reads the file block by block, and checks their framing.
std::vector<CapturedPacket> ReadPcapng(std::span<const uint8_t> bytes) {
  std::vector<CapturedPacket> packets;
  size_t number = 0;
  while (!bytes.empty()) {
    if (bytes.size() < 12) {
      ADD_FAILURE() << "torn block";
      break;
    }
    const uint32_t type = U32(bytes, 0);
    const uint32_t length = U32(bytes, 4);
    if (length % 4 != 0 || length < 12 || length > bytes.size() ||
        U32(bytes, length - 4) != length) {
      ADD_FAILURE() << "bad block length";
      break;
    }
    if (number == 0) {
      EXPECT_EQ(type, 0x0A0D0D0AU);
    }
    if (number == 1) {
      EXPECT_EQ(type, 1U);
    }
    if (number > 1 && (type != 1 || !packets.empty())) {
      EXPECT_EQ(type, 6U);
      CapturedPacket packet{.captured = U32(bytes, 20), .original = U32(bytes, 24)};
      const auto frame = bytes.subspan(28, packet.captured);
      packet.frame.assign(frame.begin(), frame.end());
      packet.interface = U32(bytes, 8);
      packet.flags = U32(bytes, 28 + (packet.captured + 3) / 4 * 4 + 4);
      packets.push_back(std::move(packet));
    }
    bytes = bytes.subspan(length);
    ++number;
  }
  EXPECT_GE(number, 2U);
  return packets;
}

class CapturePortTest : public ::testing::Test {
 protected:
  void Send(uint32_t first, uint32_t last, size_t payload = 64) {
    for (uint32_t psn = first; psn <= last; ++psn) {
      ASSERT_TRUE(SendTestPacket(port_, TestPath(), kQpn, psn, payload));
    }
  }
  // Sends eight packets at once.
  void SendBurst() {
    std::array<TxPacket*, 8> burst;
    for (uint32_t psn = 0; psn < burst.size(); ++psn) {
      burst[psn] = port_.Acquire();
      burst[psn]->path = TestPath();
      burst[psn]->length =
          static_cast<uint32_t>(rocegw::testing::WriteTestPacket(kQpn, psn, 64, burst[psn]->data));
    }
    ASSERT_EQ(port_.Transmit(burst), 8U);
  }
  void Start(const CaptureConfig& config = {}) {
    sink_ = std::make_shared<FileSink>(std::move(file_.tap));
    const Status status = tap_.Start(sink_, config);
    ASSERT_TRUE(status.ok()) << status.text();
  }

  PairLink link_{{.first_ip_id = 100}};
  MemoryFile file_;
  std::shared_ptr<FileSink> sink_;
  CaptureTaps taps_;
  CaptureTap& tap_ = taps_[0];
  CapturePort port_{link_.port(0), taps_};
};

TEST_F(CapturePortTest, BothDirections_AreWholeFramesWithGoodIcrcs) {
  Start();
  Send(0, 1);
  ASSERT_TRUE(SendTestPacket(link_.port(1), TestPath(), kQpn, 9, 33));
  EXPECT_EQ(ReceiveAll(port_).size(), 1U);
  const CaptureSummary summary = tap_.Stop();
  EXPECT_EQ(summary.packets, 3U);
  EXPECT_EQ(summary.missed, 0U);
  EXPECT_TRUE(summary.write_status.ok());
  const auto bytes = file_.bytes();
  EXPECT_EQ(bytes.size(), summary.bytes);
  const auto packets = ReadPcapng(bytes);
  ASSERT_EQ(packets.size(), 3U);
  const std::array<uint32_t, 3> psns{0, 1, 9};
  const std::array<uint16_t, 3> ids{0, 0, 100};
  for (size_t i = 0; i < 3; ++i) {
    uint16_t ether_type = 0;
    std::span<const uint8_t> network;
    ParsedFrame frame;
    ASSERT_TRUE(ParseEthernet(packets[i].frame, ether_type, network));
    ASSERT_EQ(ParseIpUdp(ether_type, network, frame), FrameVerdict::kRoce);
    EXPECT_EQ(packets[i].captured, packets[i].original);
    EXPECT_EQ(packets[i].flags, i == 2 ? 1U : 2U);
    EXPECT_EQ(PsnOf(frame.payload), psns[i]);
    EXPECT_TRUE(IsTestPacket(frame.payload));
    EXPECT_EQ(frame.meta.source, TestPath().source);
    uint16_t id = frame.meta.ip_id;
    EXPECT_EQ(id, ids[i]);
    EXPECT_TRUE(wire::VerifyIcrc(frame.meta, frame.payload, &id));
  }
  // Captured packets arrive unharmed.
  for (const auto& received : ReceiveAll(link_.port(1))) {
    uint16_t id = received.meta.ip_id;
    EXPECT_TRUE(wire::VerifyIcrc(received.meta, received.bytes, &id));
  }
}

TEST_F(CapturePortTest, HiddenIpId_IsRecoveredForTheCapture) {
  PairLink hidden({.ip_id_visible = false, .first_ip_id = 4711});
  CapturePort receiver(hidden.port(1), taps_);
  Start();
  ASSERT_TRUE(SendTestPacket(hidden.port(0), TestPath(), kQpn, 0, 8));
  EXPECT_EQ(ReceiveAll(receiver).size(), 1U);
  (void)tap_.Stop();
  const auto packets = ReadPcapng(file_.bytes());
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].frame[14 + 4] << 8 | packets[0].frame[14 + 5], 4711);
}

TEST_F(CapturePortTest, OnlyBetweenStartAndStop) {
  Send(0, 0);
  Start();
  Send(1, 2);
  EXPECT_EQ(tap_.Stop().packets, 2U);
  Send(3, 3);
  EXPECT_EQ(ReadPcapng(file_.bytes()).size(), 2U);
  EXPECT_EQ(ReceiveAll(link_.port(1)).size(), 4U);
  EXPECT_EQ(tap_.Stop().packets, 0U);
}

TEST_F(CapturePortTest, PushedBackPackets_AreCapturedWhenTheyLeave) {
  PairLink narrow({.queue_depth = 2});
  CapturePort sender(narrow.port(0), taps_);
  std::vector<TxPacket*> packets;
  for (uint32_t psn = 0; psn < 4; ++psn) {
    TxPacket* packet = sender.Acquire();
    packet->path = TestPath();
    packet->length =
        static_cast<uint32_t>(rocegw::testing::WriteTestPacket(kQpn, psn, 8, packet->data));
    packets.push_back(packet);
  }
  Start();
  ASSERT_EQ(sender.Transmit(packets), 2U);
  ASSERT_EQ(sender.Transmit(std::span(packets).subspan(2)), 0U);
  EXPECT_EQ(ReceiveAll(narrow.port(1)).size(), 2U);
  ASSERT_EQ(sender.Transmit(std::span(packets).subspan(2)), 2U);
  EXPECT_EQ(tap_.Stop().packets, 4U);
  EXPECT_EQ(ReadPcapng(file_.bytes()).size(), 4U);
}

TEST_F(CapturePortTest, PayloadByReference_IsInTheCapture) {
  CapturePort sender(link_.port(0), taps_);
  TxPacket* packet = sender.Acquire();
  packet->path = TestPath();
  packet->length =
      static_cast<uint32_t>(rocegw::testing::WriteTestPacket(kQpn, 7, 200, packet->data));
  constexpr uint32_t kAt = rocegw::testing::kTestHeader;
  const std::vector<uint8_t> outside(packet->data + kAt, packet->data + kAt + 200);
  std::fill_n(packet->data + kAt, 200, uint8_t{0});
  packet->outside = {outside.data(), kAt, 200};
  Start();
  ASSERT_EQ(sender.Transmit(std::span(&packet, 1)), 1U);
  (void)tap_.Stop();
  const auto captured = ReadPcapng(file_.bytes());
  ASSERT_EQ(captured.size(), 1U);
  const auto got = ReceiveAll(link_.port(1));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(IsTestPacket(got[0].bytes));
  const std::vector<uint8_t>& frame = captured[0].frame;
  EXPECT_NE(std::search(frame.begin(), frame.end(), outside.begin(), outside.end()), frame.end());
}

TEST_F(CapturePortTest, SnapLength_CutsTheFrameAndKeepsItsLength) {
  Start({.snap_length = 60});
  Send(0, 0, 1000);
  (void)tap_.Stop();
  const auto packets = ReadPcapng(file_.bytes());
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].captured, 60U);
  EXPECT_EQ(packets[0].original, 14U + 20 + 8 + 12 + 1000 + 4);
}

TEST_F(CapturePortTest, SizeBound_EndsTheCaptureAndNotTheTraffic) {
  Start({.max_bytes = 2000});
  Send(0, 99);
  EXPECT_FALSE(tap_.active());
  const CaptureSummary summary = tap_.Stop();
  EXPECT_EQ(summary.end, CaptureEnd::kBytes);
  EXPECT_LE(file_.bytes().size(), 2000U);
  EXPECT_EQ(ReadPcapng(file_.bytes()).size(), summary.packets);
  EXPECT_GT(summary.packets, 5U);
  EXPECT_EQ(ReceiveAll(link_.port(1)).size(), 100U);
}

TEST_F(CapturePortTest, BufferBound_CountsWhatIsMissed) {
  Start({.buffer_bytes = 600});
  SendBurst();
  const CaptureSummary summary = tap_.Stop();
  EXPECT_EQ(summary.packets, 0U);
  EXPECT_EQ(summary.missed, 8U);
  EXPECT_TRUE(ReadPcapng(file_.bytes()).empty());
}

TEST_F(CapturePortTest, WriteError_IsReportedAndEndsTheCapture) {
  const auto full = std::make_shared<FileSink>(UniqueFd(open("/dev/full", O_WRONLY | O_CLOEXEC)));
  const Status status = tap_.Start(full, {});
  ASSERT_TRUE(status.ok());
  while (tap_.active()) {
    Send(0, 0);
    (void)ReceiveAll(link_.port(1));
  }
  const CaptureSummary summary = tap_.Stop();
  EXPECT_EQ(summary.write_status.error(), ENOSPC);
}

TEST_F(CapturePortTest, SecondStart_IsBusy) {
  Start();
  EXPECT_EQ(tap_.Start(sink_, {}).error(), EBUSY);
}

TEST_F(CapturePortTest, PacketBound_TakesThatManyOfABurst) {
  Start({.max_packets = 3});
  SendBurst();
  const CaptureSummary summary = tap_.Stop();
  EXPECT_EQ(summary.end, CaptureEnd::kPackets);
  EXPECT_EQ(summary.packets, 3U);
  EXPECT_EQ(ReadPcapng(file_.bytes()).size(), 3U);
}

TEST_F(CapturePortTest, DurationBound_EndsByItself) {
  std::promise<void> ended;
  Start({.duration = Milliseconds(30), .ended = [&] { ended.set_value(); }});
  Send(0, 0);
  ended.get_future().wait();
  EXPECT_FALSE(tap_.active());
  EXPECT_EQ(sink_->ended->end, CaptureEnd::kDuration);
  EXPECT_EQ(tap_.Stop().packets, 1U);
  EXPECT_EQ(ReadPcapng(file_.bytes()).size(), 1U);
}

TEST_F(CapturePortTest, Filter_TakesItsQueuePairsAndAddressesInBothDirections) {
  constexpr Qpn kOther{0x77};
  tap_.filter().Reset(true, {}, {});
  tap_.filter().Add(kQpn);
  Start();
  const auto transmit = [&](Qpn source, uint32_t psn) {
    TxPacket* packet = port_.Acquire();
    packet->path = TestPath();
    packet->source_qpn = source;
    // The destination does not identify the pool: both send to the same queue pair.
    packet->length =
        static_cast<uint32_t>(rocegw::testing::WriteTestPacket(Qpn{5}, psn, 8, packet->data));
    ASSERT_EQ(port_.Transmit(std::array{packet}), 1U);
  };
  transmit(kQpn, 1);
  transmit(kOther, 2);
  ASSERT_TRUE(SendTestPacket(link_.port(1), TestPath(), kQpn, 3, 8));
  ASSERT_TRUE(SendTestPacket(link_.port(1), TestPath(), kOther, 4, 8));
  EXPECT_EQ(ReceiveAll(port_).size(), 2U);
  // The number was assigned to another queue pair.
  tap_.filter().Remove(kQpn);
  transmit(kQpn, 5);
  tap_.filter().SetAddresses({TestPath().source});
  transmit(kOther, 6);
  (void)tap_.Stop();
  std::vector<uint32_t> psns;
  for (const CapturedPacket& packet : ReadPcapng(file_.bytes())) {
    uint16_t ether_type = 0;
    std::span<const uint8_t> network;
    ParsedFrame frame;
    ASSERT_TRUE(ParseEthernet(packet.frame, ether_type, network));
    ASSERT_EQ(ParseIpUdp(ether_type, network, frame), FrameVerdict::kRoce);
    psns.push_back(PsnOf(frame.payload));
  }
  EXPECT_EQ(psns, (std::vector<uint32_t>{1, 3, 6}));
}

// Tenants share channels: the frame itself names its queue pair.
TEST_F(CapturePortTest, FramesOfAChannel_AreTheQueuePairsThatTheyName) {
  constexpr Qpn kChannel{0x4444};
  constexpr Qpn kOther{0x77};
  tap_.filter().Reset(true, {}, {});
  tap_.filter().Add(kQpn);
  tap_.filter().Add(kChannel);
  Start();
  const auto receive = [&](Qpn endpoint, uint32_t psn) {
    PacketPort& peer = link_.port(1);
    TxPacket* packet = peer.Acquire();
    packet->path = TestPath();
    packet->length =
        static_cast<uint32_t>(rocegw::testing::WriteTestPacket(kChannel, psn, 64, packet->data));
    packet->data[0] = static_cast<uint8_t>(wire::Opcode::kChannelFrame);
    packet->data[20] = static_cast<uint8_t>(endpoint.value >> 16);
    packet->data[21] = static_cast<uint8_t>(endpoint.value >> 8);
    packet->data[22] = static_cast<uint8_t>(endpoint.value);
    ASSERT_EQ(peer.Transmit(std::array{packet}), 1U);
  };
  receive(kQpn, 1);
  receive(kOther, 2);
  EXPECT_EQ(ReceiveAll(port_).size(), 2U);
  (void)tap_.Stop();
  const auto packets = ReadPcapng(file_.bytes());
  ASSERT_EQ(packets.size(), 1U);
  uint16_t ether_type = 0;
  std::span<const uint8_t> network;
  ParsedFrame frame;
  ASSERT_TRUE(ParseEthernet(packets[0].frame, ether_type, network));
  ASSERT_EQ(ParseIpUdp(ether_type, network, frame), FrameVerdict::kRoce);
  EXPECT_EQ(PsnOf(frame.payload), 1U);
}

// A bundle has frames of several tenants: a capture of one of them shows its frames alone, each as
// a datagram with a right ICRC.
TEST_F(CapturePortTest, BundleInAFilteredCapture_IsSplit) {
  constexpr Qpn kChannel{0x4444};
  constexpr Qpn kOther{0x77};
  tap_.filter().Reset(true, {}, {});
  tap_.filter().Add(kQpn);
  tap_.filter().Add(kChannel);
  taps_[1].filter().Reset(false, {}, {});
  MemoryFile all;
  Start();
  ASSERT_TRUE(taps_[1].Start(std::make_shared<FileSink>(std::move(all.tap)), {}).ok());
  // Writes a bundle of three frames, of which the second is from and to `other`.
  const auto write = [&](TxPacket* packet) {
    packet->path = TestPath();
    std::vector<uint8_t> bytes(256);
    size_t length = 0;
    for (uint32_t psn = 1; psn <= 3; ++psn) {
      const Qpn endpoint = psn == 2 ? kOther : kQpn;
      const size_t one = rocegw::testing::WriteTestPacket(kChannel, psn, 64, bytes.data());
      bytes[0] = static_cast<uint8_t>(wire::Opcode::kChannelFrame);
      for (const size_t at : {20, 24}) {
        bytes[at] = static_cast<uint8_t>(endpoint.value >> 16);
        bytes[at + 1] = static_cast<uint8_t>(endpoint.value >> 8);
        bytes[at + 2] = static_cast<uint8_t>(endpoint.value);
      }
      if (psn == 1) {
        std::memcpy(packet->data, bytes.data(), one);
        length = wire::BeginBundle(packet->data, one);
      } else {
        length = wire::AppendToBundle(packet->data, length, {bytes.data(), one});
      }
    }
    packet->length = static_cast<uint32_t>(length);
  };
  TxPacket* outbound = port_.Acquire();
  write(outbound);
  ASSERT_EQ(port_.Transmit(std::array{outbound}), 1U);
  PacketPort& peer = link_.port(1);
  TxPacket* inbound = peer.Acquire();
  write(inbound);
  ASSERT_EQ(peer.Transmit(std::array{inbound}), 1U);
  EXPECT_EQ(ReceiveAll(port_).size(), 1U);
  EXPECT_EQ(taps_[1].Stop().packets, 2U) << "the wire's datagrams";
  EXPECT_EQ(tap_.Stop().packets, 4U);
  std::vector<uint32_t> psns;
  for (const CapturedPacket& packet : ReadPcapng(file_.bytes())) {
    uint16_t ether_type = 0;
    std::span<const uint8_t> network;
    ParsedFrame frame;
    ASSERT_TRUE(ParseEthernet(packet.frame, ether_type, network));
    ASSERT_EQ(ParseIpUdp(ether_type, network, frame), FrameVerdict::kRoce);
    psns.push_back(PsnOf(frame.payload));
    EXPECT_EQ(frame.payload[0], static_cast<uint8_t>(wire::Opcode::kChannelFrame));
    uint16_t ip_id = 0;
    EXPECT_TRUE(wire::VerifyIcrc(frame.meta, frame.payload, &ip_id));
  }
  EXPECT_EQ(psns, (std::vector<uint32_t>{1, 3, 1, 3}));
}

TEST_F(CapturePortTest, FilterByPeerAndQueuePair) {
  CaptureFilter filter;
  const wire::Gid here = TestPath().source;
  const wire::Gid there = TestPath().destination;
  filter.Reset(false, kQpn, there);
  EXPECT_TRUE(filter.Wants({kQpn, here, there}));
  EXPECT_FALSE(filter.Wants({Qpn{0x13}, here, there}));
  EXPECT_FALSE(filter.Wants({kQpn, here, here}));
}

TEST_F(CapturePortTest, TwoCaptures_EachHasItsOwn_AndNamesItsInterfaces) {
  MemoryFile second;
  CapturePort other(link_.port(1), taps_, 1);
  taps_[1].filter().Reset(true, {}, {});
  Start({.interfaces = {"a/0", "a/1"}});
  const auto nothing = std::make_shared<FileSink>(std::move(second.tap));
  ASSERT_TRUE(taps_[1].Start(nothing, {}).ok());
  Send(0, 0);
  EXPECT_EQ(ReceiveAll(other).size(), 1U);
  EXPECT_EQ(taps_[1].Stop().packets, 0U);
  EXPECT_EQ(tap_.Stop().packets, 2U);
  const auto packets = ReadPcapng(file_.bytes());
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(packets[0].interface, 0U);
  EXPECT_EQ(packets[1].interface, 1U);
}

}  // namespace
}  // namespace rocegw::port
