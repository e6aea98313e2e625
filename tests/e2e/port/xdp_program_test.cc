// SPDX-License-Identifier: Apache-2.0
// The XDP program, run by the kernel on frames of this test (BPF_PROG_TEST_RUN). Needs root.
#include "gateway/port/xdp/xdp_program.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/port/xdp/xdp_socket.h"
#include "gateway/wire/byte_order.h"
#include "tests/support/network/port_fixture.h"
#include "tests/support/network/xdp_test_run.h"

namespace rocegw::port {
namespace {

using rocegw::testing::TestAddress;

constexpr MacAddress kXdpMac = {2, 9, 0, 0, 0, 1};
constexpr size_t kXdpPayload = 64;

class XdpProgramTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto program = XdpProgram::Load(wire::kRocePort);
    ASSERT_TRUE(program.ok()) << program.status().text();
    program_.emplace(std::move(*program));
    auto memory = XdpMemory::Map(64 * kXdpChunk);
    ASSERT_TRUE(memory.ok());
    memory_ = std::move(*memory);
    // The socket is not bound: the kernel only looks whether queue 0 has one.
    auto socket = XdpSocket::Open({.interface = "lo", .memory = &memory_});
    ASSERT_TRUE(socket.ok()) << socket.status().text();
    socket_ = std::move(*socket);
    ASSERT_TRUE(program_->AddSocket(0, socket_->fd()).ok());
    const wire::Gid own[] = {TestAddress(1, true), TestAddress(1, false)};
    program_->SetAddresses(own);
  }

  static wire::Path To(const wire::Gid& destination) {
    return {.source = TestAddress(2, destination.IsV4()),
            .destination = destination,
            .source_port = 0xC111,
            .hop_limit = 64};
  }

  // Returns the frame of a packet to UDP port 4791.
  static std::vector<uint8_t> FrameTo(const wire::Gid& destination) {
    const wire::Path path = To(destination);
    const size_t headers = kEthernetHeaderLength + IpUdpLength(destination);
    std::vector<uint8_t> frame(headers + kXdpPayload);
    WriteEthernet(kXdpMac, kXdpMac, destination.IsV4() ? kEtherTypeIpv4 : kEtherTypeIpv6,
                  frame.data());
    (void)WriteIpUdp(path, 0, kXdpPayload, frame.data() + kEthernetHeaderLength);
    return frame;
  }
  static std::vector<uint8_t> OwnFrame() { return FrameTo(TestAddress(1, GetParam())); }
  static size_t UdpOffset() {
    return kEthernetHeaderLength + (GetParam() ? kIpv4HeaderLength : kIpv6HeaderLength);
  }

  int Verdict(const std::vector<uint8_t>& frame, uint32_t queue = 0) {
    return rocegw::testing::RunXdpProgram(program_->fd(), frame, queue);
  }

  std::optional<XdpProgram> program_;
  XdpMemory memory_;
  std::unique_ptr<XdpSocket> socket_;
};

INSTANTIATE_TEST_SUITE_P(Families, XdpProgramTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(XdpProgramTest, OwnAddress_IsTaken) { EXPECT_EQ(Verdict(OwnFrame()), XDP_REDIRECT); }

TEST_P(XdpProgramTest, ForeignAddress_Passes) {
  EXPECT_EQ(Verdict(FrameTo(TestAddress(3, GetParam()))), XDP_PASS);
}

TEST_P(XdpProgramTest, RemovedAddress_Passes) {
  program_->SetAddresses({});
  EXPECT_EQ(Verdict(OwnFrame()), XDP_PASS);
  const wire::Gid other[] = {TestAddress(3, GetParam())};
  program_->SetAddresses(other);
  EXPECT_EQ(Verdict(FrameTo(other[0])), XDP_REDIRECT);
}

TEST_P(XdpProgramTest, Group_IsTaken) {
  wire::Gid group = wire::Gid::FromV4(0xEF010203);
  if (!GetParam()) {
    group = {};
    group.bytes[0] = 0xFF;
    group.bytes[1] = 0x15;
  }
  EXPECT_EQ(Verdict(FrameTo(group)), XDP_REDIRECT);
}

TEST_P(XdpProgramTest, OtherPort_Passes) {
  auto frame = OwnFrame();
  wire::StoreBe16(&frame[UdpOffset() + 2], wire::kRocePort + 1);
  EXPECT_EQ(Verdict(frame), XDP_PASS);
  // The source port does not count.
  frame = OwnFrame();
  wire::StoreBe16(&frame[UdpOffset() + 2], 53);
  wire::StoreBe16(&frame[UdpOffset()], wire::kRocePort);
  EXPECT_EQ(Verdict(frame), XDP_PASS);
}

TEST_P(XdpProgramTest, OtherProtocol_Passes) {
  for (const uint8_t protocol : {1, 6, 58, 132}) {
    auto frame = OwnFrame();
    frame[kEthernetHeaderLength + (GetParam() ? 9 : 6)] = protocol;
    EXPECT_EQ(Verdict(frame), XDP_PASS) << int{protocol};
  }
}

TEST_P(XdpProgramTest, OtherEtherType_Passes) {
  for (const uint16_t type : {kEtherTypeArp, kEtherTypeVlan, uint16_t{0x88A8}}) {
    auto frame = OwnFrame();
    wire::StoreBe16(&frame[12], type);
    EXPECT_EQ(Verdict(frame), XDP_PASS) << type;
  }
}

TEST_P(XdpProgramTest, FragmentsAndOptions_Pass) {
  if (GetParam()) {
    auto frame = OwnFrame();
    frame[kEthernetHeaderLength] = 0x46;
    EXPECT_EQ(Verdict(frame), XDP_PASS);
    for (const uint16_t fragment : {0x2000, 0x0001, 0x1FFF}) {
      frame = OwnFrame();
      wire::StoreBe16(&frame[kEthernetHeaderLength + 6], fragment);
      EXPECT_EQ(Verdict(frame), XDP_PASS) << fragment;
    }
  } else {
    for (const uint8_t header : {0, 43, 44, 60}) {
      auto frame = OwnFrame();
      frame[kEthernetHeaderLength + 6] = header;
      EXPECT_EQ(Verdict(frame), XDP_PASS) << int{header};
    }
  }
}

TEST_P(XdpProgramTest, ShortFrames_Pass) {
  const auto frame = OwnFrame();
  const size_t headers = frame.size() - kXdpPayload;
  for (size_t length = kEthernetHeaderLength; length < headers; ++length) {
    const std::vector<uint8_t> cut(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_EQ(Verdict(cut), XDP_PASS) << length;
  }
  EXPECT_EQ(Verdict({frame.begin(), frame.begin() + static_cast<ptrdiff_t>(headers)}),
            XDP_REDIRECT);
}

TEST_P(XdpProgramTest, QueueWithoutSocket_Passes) {
  std::vector<uint8_t> frame = OwnFrame();
  socket_.reset();
  EXPECT_EQ(Verdict(frame), XDP_PASS);
}

}  // namespace
}  // namespace rocegw::port
