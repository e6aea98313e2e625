// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/plain_path.h"

#include <endian.h>
#include <netinet/in.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "agent/probe_program/failure.h"
#include "agent/probe_program/plain_socket.h"
#include "agent/probe_program/watchdog.h"

namespace rocegw::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kClockRounds = 5;
constexpr uint32_t kDatagrams = 400;
// All datagrams fit the receive buffer that the kernel gives without being asked: a receiver that
// waits for a CPU loses none.
constexpr uint32_t kDatagramBytes = 128;
constexpr std::chrono::microseconds kBetweenDatagrams(100);
// Marks the end of the datagrams; sent several times, since one may be lost.
constexpr uint32_t kLastDatagram = UINT32_MAX;
constexpr int kLastDatagrams = 3;
constexpr std::chrono::milliseconds kFirstDatagramWithin(1500);
constexpr std::chrono::milliseconds kNextDatagramWithin(300);
constexpr std::chrono::milliseconds kConnectWithin(2000);
// Longer than the other end tries to connect.
constexpr std::chrono::milliseconds kAcceptWithin(2500);
constexpr uint32_t kMostTcpRoundTrips = 1000;
constexpr uint64_t kMostTcpBulk = 64 << 20;
constexpr uint32_t kChunk = 65536;

// Head of each datagram, and the first bytes of a TCP connection. The token tells them from those
// of strangers.
struct Head {
  uint64_t token;
  uint32_t number;
  uint32_t unused;
};

uint64_t ReceiveNumber(Connection& connection) {
  const Connection::Message message = connection.Receive();
  uint64_t number = 0;
  if (message.length != sizeof number)
    Fail(Fault::kCorrupted, "the other end sent a message of another kind");
  std::memcpy(&number, message.bytes, sizeof number);
  connection.GiveBack(message);
  return be64toh(number);
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t MeasureClock(Connection& connection) {
  int64_t ahead = 0;
  int64_t shortest = INT64_MAX;
  for (uint32_t i = 0; i < kClockRounds; ++i) {
    const int64_t begin = Now();
    connection.SendNumber(0);
    const uint64_t there = ReceiveNumber(connection);
    const int64_t end = Now();
    if (end - begin >= shortest) continue;
    shortest = end - begin;
    // The other end may send any number: without a sign nothing overflows.
    ahead = static_cast<int64_t>(there - static_cast<uint64_t>(begin + shortest / 2));
  }
  return ahead;
}

void SendDatagrams(const PlainSocket& socket, uint64_t token) {
  std::vector<uint8_t> bytes(kDatagramBytes);
  const auto send = [&](uint32_t number) {
    const Head head{htobe64(token), htobe32(number), 0};
    std::memcpy(bytes.data(), &head, sizeof head);
    socket.SendDatagram(bytes);
  };
  auto next = Clock::now();
  for (uint32_t number = 0; number < kDatagrams; ++number) {
    send(number);
    next += kBetweenDatagrams;
    std::this_thread::sleep_until(next);
  }
  for (int i = 0; i < kLastDatagrams; ++i) send(kLastDatagram);
}

// Counts the datagrams of the token until the last one, or until none comes any more.
PlainPath CountDatagrams(const PlainSocket& socket, uint64_t token) {
  PlainPath counted;
  std::vector<bool> seen(kDatagrams);
  uint32_t highest = 0;
  auto patience = kFirstDatagramWithin;
  const auto end = Clock::now() + kFirstDatagramWithin + kDatagrams * kBetweenDatagrams * 10;
  std::vector<uint8_t> bytes(kDatagramBytes);
  uint8_t traffic_class = 0;
  while (Clock::now() < end && socket.ReceiveDatagram(patience, bytes, traffic_class)) {
    Head head;
    std::memcpy(&head, bytes.data(), sizeof head);
    const uint32_t number = be32toh(head.number);
    if (be64toh(head.token) != token) continue;
    if (number == kLastDatagram) break;
    if (number >= kDatagrams || seen[number]) continue;
    seen[number] = true;
    patience = kNextDatagramWithin;
    ++counted.received;
    counted.reordered += number < highest ? 1U : 0U;
    highest = std::max(highest, number);
    counted.dscp_kept += traffic_class >> 2 == kDscp ? 1U : 0U;
    counted.ecn_kept += (traffic_class & kEcnMask) == kEcnCapable ? 1U : 0U;
    counted.ecn_marked += (traffic_class & kEcnMask) == kEcnMask ? 1U : 0U;
  }
  return counted;
}

uint32_t TcpRounds(const Wishes& wishes) {
  return std::min(wishes.round_trips, kMostTcpRoundTrips);
}
uint64_t TcpBulk(const Wishes& wishes) { return std::min(wishes.bulk_bytes, kMostTcpBulk); }

void MeasureTcp(PlainSocket& socket, uint64_t token, const Wishes& wishes, PlainPath& path) {
  const Head head{htobe64(token), 0, 0};
  socket.Write(&head, sizeof head);
  std::vector<uint8_t> bytes(std::max(kChunk, wishes.message_bytes));
  std::vector<uint64_t> times;
  for (uint32_t i = 0; i < TcpRounds(wishes); ++i) {
    const auto begin = Clock::now();
    socket.Write(bytes.data(), wishes.message_bytes);
    socket.Read(bytes.data(), wishes.message_bytes);
    times.push_back(static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count()));
  }
  std::ranges::sort(times);
  if (!times.empty()) path.tcp_median_ns = times[times.size() / 2];
  const uint64_t bulk = TcpBulk(wishes);
  if (bulk == 0) return;
  const auto begin = Clock::now();
  for (uint64_t left = bulk; left > 0; left -= std::min<uint64_t>(left, kChunk))
    socket.Write(bytes.data(), std::min<uint64_t>(left, kChunk));
  // The other end sends one byte when it has all.
  socket.Read(bytes.data(), 1);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  path.tcp_bytes_per_second = static_cast<uint64_t>(static_cast<double>(bulk) / seconds);
}

void ServeTcp(const PlainSocket& listener, uint64_t token, const Wishes& wishes) {
  const Head head{htobe64(token), 0, 0};
  PlainSocket socket = listener.AcceptWithHead(&head, sizeof head, kAcceptWithin);
  std::vector<uint8_t> bytes(std::max(kChunk, wishes.message_bytes));
  for (uint32_t i = 0; i < TcpRounds(wishes); ++i) {
    socket.Read(bytes.data(), wishes.message_bytes);
    socket.Write(bytes.data(), wishes.message_bytes);
  }
  for (uint64_t left = TcpBulk(wishes); left > 0; left -= std::min<uint64_t>(left, kChunk))
    socket.Read(bytes.data(), std::min<uint64_t>(left, kChunk));
  if (TcpBulk(wishes) != 0) socket.Write(bytes.data(), 1);
}

}  // namespace

void ServePlain(Connection& connection, const Wishes& wishes) {
  SetStage("measuring the network beside RDMA");
  const uint64_t token = ReceiveNumber(connection);
  PlainSocket udp;
  PlainSocket tcp;
  try {
    udp = PlainSocket::Datagrams(connection.address());
    tcp = PlainSocket::Listener(connection.address());
  } catch (const NetworkProblem&) {
    // A port without the kernel: its address is not the host's.
    connection.SendNumber(0);
    return;
  }
  connection.SendNumber(uint64_t{udp.port()} << 16 | tcp.port());
  for (uint32_t i = 0; i < kClockRounds; ++i) {
    (void)ReceiveNumber(connection);
    connection.SendNumber(static_cast<uint64_t>(Now()));
  }
  const PlainPath counted = CountDatagrams(udp, token);
  (void)ReceiveNumber(connection);
  for (const uint32_t number : {counted.received, counted.reordered, counted.dscp_kept,
                                counted.ecn_kept, counted.ecn_marked})
    connection.SendNumber(number);
  try {
    ServeTcp(tcp, token, wishes);
  } catch (const NetworkProblem&) {
    // The connecting end reports it.
  }
}

PlainPath MeasurePlain(Connection& connection, const std::string& address, const Wishes& wishes) {
  SetStage("measuring the network beside RDMA");
  PlainPath path;
  if (!connection.other_measures_plain()) {
    path.problem = "the other host's rocegw-probe is older and does not measure it";
    return path;
  }
  uint64_t token = 0;
  if (getrandom(&token, sizeof token, 0) != sizeof token) FailCall(Fault::kFailed, "getrandom");
  connection.SendNumber(token);
  const uint64_t ports = ReceiveNumber(connection);
  if (ports == 0) {
    path.problem = "the kernel of the other host does not have " + address;
    return path;
  }
  path.clock_ahead_ns = MeasureClock(connection);
  try {
    const PlainSocket udp = PlainSocket::DatagramsTo(address, static_cast<uint16_t>(ports >> 16));
    SendDatagrams(udp, token);
    path.sent = kDatagrams;
  } catch (const NetworkProblem& problem) {
    path.problem = problem.text;
  }
  connection.SendNumber(path.sent);
  for (uint32_t* const number :
       {&path.received, &path.reordered, &path.dscp_kept, &path.ecn_kept, &path.ecn_marked})
    *number = static_cast<uint32_t>(ReceiveNumber(connection));
  // Counts of datagrams that were not all sent say nothing.
  if (path.sent == 0)
    path = {.clock_ahead_ns = path.clock_ahead_ns, .problem = std::move(path.problem)};
  try {
    PlainSocket tcp = PlainSocket::ConnectTo(address, static_cast<uint16_t>(ports), kConnectWithin);
    MeasureTcp(tcp, token, wishes, path);
  } catch (const NetworkProblem& problem) {
    path.problem = problem.text;
  }
  return path;
}

}  // namespace rocegw::probe
