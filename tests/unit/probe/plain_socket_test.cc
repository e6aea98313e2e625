// SPDX-License-Identifier: Apache-2.0
// Sockets of the probe for the network beside RDMA, over the loopback device.
#include "agent/probe_program/plain_socket.h"

#include <gtest/gtest.h>

#include <thread>

namespace rocegw::probe {
namespace {

constexpr std::chrono::milliseconds kSoon(2000);
constexpr std::chrono::milliseconds kAtOnce(20);

class PlainSockets : public ::testing::TestWithParam<const char*> {};

TEST_P(PlainSockets, ADatagramArrivesWithItsMarks) {
  const PlainSocket receiver = PlainSocket::Datagrams(GetParam());
  const PlainSocket sender = PlainSocket::DatagramsTo(GetParam(), receiver.port());
  sender.SendDatagram(std::vector<uint8_t>(7));
  sender.SendDatagram(std::vector<uint8_t>(100, 3));
  std::vector<uint8_t> bytes(100);
  uint8_t traffic_class = 0;
  ASSERT_TRUE(receiver.ReceiveDatagram(kSoon, bytes, traffic_class)) << "after the short one";
  EXPECT_EQ(bytes, std::vector<uint8_t>(100, 3));
  EXPECT_EQ(traffic_class >> 2, kDscp);
  EXPECT_EQ(traffic_class & kEcnMask, kEcnCapable);
  EXPECT_FALSE(receiver.ReceiveDatagram(kAtOnce, bytes, traffic_class));
}

TEST_P(PlainSockets, TcpThereAndBack) {
  const PlainSocket listener = PlainSocket::Listener(GetParam());
  PlainSocket connected = PlainSocket::ConnectTo(GetParam(), listener.port(), kSoon);
  PlainSocket accepted = listener.Accept(kSoon);
  std::vector<uint8_t> sent(300'000, 7);
  std::thread writer([&] { connected.Write(sent.data(), sent.size()); });
  std::vector<uint8_t> got(sent.size());
  accepted.Read(got.data(), got.size());
  writer.join();
  EXPECT_EQ(got, sent);
}

// The socket of a measurement takes datagrams of everybody: after its deadline none is read any
// more, or a stranger who sends without a pause would hold it.
TEST_P(PlainSockets, AfterItsTimeNoDatagramIsTaken) {
  const PlainSocket receiver = PlainSocket::Datagrams(GetParam());
  const PlainSocket sender = PlainSocket::DatagramsTo(GetParam(), receiver.port());
  sender.SendDatagram(std::vector<uint8_t>(7));
  sender.SendDatagram(std::vector<uint8_t>(100, 3));
  std::vector<uint8_t> bytes(100);
  uint8_t traffic_class = 0;
  EXPECT_FALSE(receiver.ReceiveDatagram(std::chrono::milliseconds(0), bytes, traffic_class));
  EXPECT_TRUE(receiver.ReceiveDatagram(kSoon, bytes, traffic_class));
}

TEST_P(PlainSockets, StrangersDoNotKeepTheOtherEndAway) {
  const PlainSocket listener = PlainSocket::Listener(GetParam());
  const std::vector<uint8_t> head(16, 5);
  const std::vector<uint8_t> wrong(16, 6);
  const PlainSocket silent = PlainSocket::ConnectTo(GetParam(), listener.port(), kSoon);
  // Begins, and goes on no more.
  PlainSocket slow = PlainSocket::ConnectTo(GetParam(), listener.port(), kSoon);
  slow.Write(head.data(), 1);
  { PlainSocket left = PlainSocket::ConnectTo(GetParam(), listener.port(), kSoon); }
  PlainSocket other = PlainSocket::ConnectTo(GetParam(), listener.port(), kSoon);
  other.Write(wrong.data(), wrong.size());
  PlainSocket mine = PlainSocket::ConnectTo(GetParam(), listener.port(), kSoon);
  mine.Write(head.data(), head.size());
  mine.Write("x", 1);
  PlainSocket accepted = listener.AcceptWithHead(head.data(), head.size(), kSoon);
  char next = 0;
  accepted.Read(&next, 1);
  EXPECT_EQ(next, 'x');
}

INSTANTIATE_TEST_SUITE_P(Families, PlainSockets, ::testing::Values("127.0.0.1", "::1"),
                         [](const auto& row) { return row.index == 0 ? "IPv4" : "IPv6"; });

template <typename Call>
std::string ProblemOf(const Call& call) {
  try {
    call();
  } catch (const NetworkProblem& problem) {
    return problem.text;
  }
  return {};
}

TEST(PlainSocket, ProblemsNameWhatFailed) {
  const uint16_t closed = PlainSocket::Datagrams("127.0.0.1").port();
  EXPECT_EQ(ProblemOf([&] { PlainSocket::ConnectTo("127.0.0.1", closed, kSoon); }),
            "TCP to 127.0.0.1 port " + std::to_string(closed) + ": Connection refused");
  EXPECT_EQ(ProblemOf([] { PlainSocket::Datagrams("192.0.2.1"); }),
            "bind to 192.0.2.1: Cannot assign requested address");
  EXPECT_EQ(ProblemOf([] { PlainSocket::Listener("localhost"); }), "'localhost' is no address");
  EXPECT_EQ(ProblemOf([] { PlainSocket::Listener("127.0.0.1").Accept(kAtOnce); }),
            "TCP from the other end: Connection timed out");
  EXPECT_EQ(ProblemOf([] { PlainSocket::Listener("127.0.0.1").AcceptWithHead("x", 1, kAtOnce); }),
            "TCP from the other end: Connection timed out");
}

TEST(PlainSocket, AnEndThatLeavesIsNoticed) {
  const PlainSocket listener = PlainSocket::Listener("127.0.0.1");
  PlainSocket connected = PlainSocket::ConnectTo("127.0.0.1", listener.port(), kSoon);
  { const PlainSocket left = listener.Accept(kSoon); }
  uint8_t byte = 0;
  EXPECT_NE(ProblemOf([&] { connected.Read(&byte, 1); }), "");
}

}  // namespace
}  // namespace rocegw::probe
