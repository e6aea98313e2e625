// SPDX-License-Identifier: Apache-2.0
// rocegw-probe: one end of a connectivity test. The agent starts it under rocegw-run, reads lines
// from its standard output (probe_lines.h) and ends it by closing its standard input. This file
// reads the command line.
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "agent/probe_program/connection.h"
#include "agent/probe_program/exchange.h"
#include "agent/probe_program/failure.h"
#include "agent/probe_program/plain_path.h"
#include "agent/probe_program/watchdog.h"

namespace rocegw::probe {
namespace {

constexpr int kUsage = 2;

constexpr char kHelp[] =
    "usage: rocegw-probe --time-limit MS\n"
    "       rocegw-probe --time-limit MS --connect ADDRESS PORT [--message-bytes N]\n"
    "                    [--round-trips N] [--bulk-bytes N] [--plain]\n"
    "\n"
    "One end of a connectivity test between gateways: waits at an address that it tells, or\n"
    "connects to the other end, sends messages there and back and then in bulk, and compares\n"
    "every byte. --plain measures the network beside RDMA as well. rocegw-agent starts it, through "
    "rocegw-run, for rocegwctl connectivity test; it\n"
    "ends when its standard input does, and after the time limit.\n";

struct Arguments {
  uint32_t time_limit_ms = 0;
  std::string address;  // empty: accepts
  uint16_t port = 0;
  Wishes wishes;
};

template <typename Number>
bool ReadNumber(const char* text, Number most, Number& out) {
  if (text == nullptr) return false;
  const char* const end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, out);
  return read.ec == std::errc() && read.ptr == end && out != 0 && out <= most;
}

std::optional<Arguments> Parse(char** words) {
  constexpr uint32_t kMostMilliseconds = 600'000;
  constexpr uint32_t kMostRoundTrips = 100'000;
  Arguments arguments;
  bool good = true;
  for (; good && *words != nullptr; ++words) {
    const std::string_view word = *words;
    if (word == "--time-limit") {
      good = ReadNumber(*++words, kMostMilliseconds, arguments.time_limit_ms);
    } else if (word == "--message-bytes") {
      good = ReadNumber(*++words, kLongestMessage, arguments.wishes.message_bytes);
    } else if (word == "--round-trips") {
      good = ReadNumber(*++words, kMostRoundTrips, arguments.wishes.round_trips);
    } else if (word == "--bulk-bytes") {
      good = ReadNumber(*++words, UINT64_MAX / 2, arguments.wishes.bulk_bytes);
    } else if (word == "--plain") {
      arguments.wishes.plain = true;
    } else if (word == "--connect" && words[1] != nullptr) {
      arguments.address = *++words;
      good = ReadNumber(*++words, uint16_t{UINT16_MAX}, arguments.port);
    } else {
      good = false;
    }
    if (*words == nullptr) break;
  }
  if (!good || arguments.time_limit_ms == 0) return std::nullopt;
  return arguments;
}

void Work(const Arguments& arguments) {
  Connection connection;
  if (arguments.address.empty()) {
    const Wishes wishes = connection.Accept();
    Serve(connection, wishes);
    if (wishes.plain) ServePlain(connection, wishes);
  } else {
    Measured measured;
    const auto begin = std::chrono::steady_clock::now();
    connection.Connect(arguments.address, arguments.port, arguments.wishes);
    measured.connect_ns = static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
    measured.qpn = connection.qpn();
    Measure(connection, arguments.wishes, measured);
    // Before the network beside RDMA, where strangers and firewalls can do harm.
    Tell(TextOf(measured));
    if (arguments.wishes.plain)
      Tell(TextOf(MeasurePlain(connection, arguments.address, arguments.wishes)));
  }
  SetStage("waiting to be let go");
  // The queue pair stays for inspection: the watchdog ends the process.
  for (;;) pause();
}

int Main(char** argv) {
  if (argv[1] != nullptr && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  const std::optional<Arguments> arguments = Parse(argv + 1);
  if (!arguments.has_value()) {
    std::fputs(kHelp, stderr);
    return kUsage;
  }
  StartWatchdog(std::chrono::milliseconds(arguments->time_limit_ms));
  try {
    Work(*arguments);
  } catch (const Failure& failure) {
    Tell(TextOf(failure.told));
  }
  return 1;
}

}  // namespace
}  // namespace rocegw::probe

int main(int, char** argv) { return rocegw::probe::Main(argv); }
