// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/exchange.h"

#include <endian.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "agent/probe_program/failure.h"
#include "agent/probe_program/watchdog.h"

namespace rocegw::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kBulkMessage = kLongestMessage;
// Messages of the bulk phase after which the receiver reports how many it has compared, and how
// many may be ahead of that: never more than it has receives.
constexpr uint64_t kTellEvery = 8;
constexpr uint64_t kMostAhead = Connection::kReceives / 2;
// Sent instead of a count: received bytes were wrong.
constexpr uint64_t kWrongBytes = UINT64_MAX;

uint64_t Nanoseconds(Clock::duration time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

uint64_t BulkMessages(uint64_t bytes) { return (bytes + kBulkMessage - 1) / kBulkMessage; }

uint32_t BulkLength(uint64_t bytes, uint64_t number) {
  return static_cast<uint32_t>(std::min<uint64_t>(kBulkMessage, bytes - number * kBulkMessage));
}

bool IsPattern(const Connection& connection, const Connection::Message& message,
               Direction direction, uint64_t number, uint32_t length) {
  return message.length == length &&
         std::memcmp(message.bytes, connection.pattern() + PatternOffset(direction, number),
                     length) == 0;
}

[[noreturn]] void FailWrong(const char* end, uint64_t number) {
  Fail(Fault::kCorrupted, "message " + std::to_string(number) + " arrived at " + end +
                              " with other bytes than it was sent with");
}

// A number instead of the expected message: the other end reports wrong bytes.
void CheckVerdict(const Connection::Message& message, uint64_t number) {
  if (message.length != sizeof(uint64_t)) return;
  uint64_t told = 0;
  std::memcpy(&told, message.bytes, sizeof told);
  if (be64toh(told) == kWrongBytes) FailWrong("the other end", number);
}

uint64_t PingPong(Connection& connection, uint32_t length, uint64_t number) {
  const Clock::time_point begin = Clock::now();
  connection.SendPattern(PatternOffset(Direction::kThere, number), length);
  const Connection::Message answer = connection.Receive();
  const uint64_t time = Nanoseconds(Clock::now() - begin);
  CheckVerdict(answer, number);
  if (!IsPattern(connection, answer, Direction::kBack, number, length))
    FailWrong("this end", number);
  connection.GiveBack(answer);
  return time;
}

void SendBulk(Connection& connection, uint64_t bytes, uint64_t first) {
  const uint64_t messages = BulkMessages(bytes);
  uint64_t sent = 0;
  uint64_t compared = 0;
  while (compared < messages) {
    while (sent < messages && sent - compared < kMostAhead) {
      connection.SendPattern(PatternOffset(Direction::kThere, first + sent),
                             BulkLength(bytes, sent));
      ++sent;
    }
    const Connection::Message told = connection.Receive();
    CheckVerdict(told, first + compared);
    uint64_t count = 0;
    if (told.length == sizeof count) std::memcpy(&count, told.bytes, sizeof count);
    count = be64toh(count);
    if (count <= compared || count > sent) FailWrong("this end", first + compared);
    compared = count;
    connection.GiveBack(told);
  }
}

// Reports the error to the other end as well.
[[noreturn]] void TellWrong(Connection& connection, uint64_t number) {
  connection.SendNumber(kWrongBytes);
  // Until the other end has received it and disconnects.
  try {
    for (;;) connection.GiveBack(connection.Receive());
  } catch (const Failure&) {
    FailWrong("this end", number);
  }
}

}  // namespace

void Serve(Connection& connection, const Wishes& wishes) {
  SetStage("exchanging messages");
  uint64_t number = 0;
  for (; number < wishes.round_trips; ++number) {
    const Connection::Message message = connection.Receive();
    if (!IsPattern(connection, message, Direction::kThere, number, wishes.message_bytes))
      TellWrong(connection, number);
    connection.GiveBack(message);
    connection.SendPattern(PatternOffset(Direction::kBack, number), wishes.message_bytes);
  }
  const uint64_t messages = BulkMessages(wishes.bulk_bytes);
  for (uint64_t i = 0; i < messages; ++i, ++number) {
    const Connection::Message message = connection.Receive();
    if (!IsPattern(connection, message, Direction::kThere, number,
                   BulkLength(wishes.bulk_bytes, i)))
      TellWrong(connection, number);
    connection.GiveBack(message);
    if ((i + 1) % kTellEvery == 0 || i + 1 == messages) connection.SendNumber(i + 1);
  }
}

void Measure(Connection& connection, const Wishes& wishes, Measured& measured) {
  SetStage("exchanging messages");
  std::vector<uint64_t> times;
  times.reserve(wishes.round_trips);
  for (uint32_t i = 0; i < wishes.round_trips; ++i)
    times.push_back(PingPong(connection, wishes.message_bytes, i));
  if (!times.empty()) {
    std::sort(times.begin(), times.end());
    measured.round_trips = wishes.round_trips;
    measured.min_ns = times.front();
    measured.median_ns = times[times.size() / 2];
    measured.p99_ns = times[(times.size() - 1) * 99 / 100];
  }
  if (wishes.bulk_bytes == 0) return;
  SetStage("sending bulk");
  const Clock::time_point begin = Clock::now();
  SendBulk(connection, wishes.bulk_bytes, wishes.round_trips);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  measured.bulk_bytes = wishes.bulk_bytes;
  measured.bulk_bytes_per_second =
      static_cast<uint64_t>(static_cast<double>(wishes.bulk_bytes) / seconds);
}

}  // namespace rocegw::probe
