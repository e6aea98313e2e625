// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/probe_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace rocegw::probe {
namespace {

constexpr std::array<std::pair<Fault, std::string_view>, 8> kFaults = {
    {{Fault::kAttachRefused, "attach_refused"},
     {Fault::kNoAddress, "no_address"},
     {Fault::kUnreachable, "unreachable"},
     {Fault::kConnectionRefused, "refused"},
     {Fault::kTimedOut, "timed_out"},
     {Fault::kConnectionLost, "lost"},
     {Fault::kCorrupted, "corrupted"},
     {Fault::kFailed, "failed"}}};

constexpr char kNotMeasured[] = "-";

// Removes and returns the first word.
std::string_view NextWord(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <typename Number>
bool Read(std::string_view& text, Number& out) {
  const std::string_view word = NextWord(text);
  const auto read = std::from_chars(word.data(), word.data() + word.size(), out);
  return read.ec == std::errc() && read.ptr == word.data() + word.size();
}

bool ReadOptional(std::string_view& text, std::optional<int64_t>& out) {
  std::string_view rest = text;
  if (NextWord(rest) != kNotMeasured) return Read(text, out.emplace());
  text = rest;
  return true;
}

std::string Text(const Listening& line) {
  return "listening " + line.address + " " + std::to_string(line.port);
}

std::string Text(const Measured& line) {
  std::string text = "measured";
  for (const uint64_t number :
       {uint64_t{line.qpn}, line.connect_ns, uint64_t{line.round_trips}, line.min_ns,
        line.median_ns, line.p99_ns, line.bulk_bytes, line.bulk_bytes_per_second})
    text += " " + std::to_string(number);
  return text;
}

std::string Text(const PlainPath& line) {
  std::string text = "plain";
  for (const uint64_t number :
       {uint64_t{line.sent}, uint64_t{line.received}, uint64_t{line.reordered},
        uint64_t{line.dscp_kept}, uint64_t{line.ecn_kept}, uint64_t{line.ecn_marked},
        line.tcp_median_ns, line.tcp_bytes_per_second})
    text += " " + std::to_string(number);
  const std::string clock =
      line.clock_ahead_ns.has_value() ? std::to_string(*line.clock_ahead_ns) : kNotMeasured;
  return text + " " + clock + " " + line.problem;
}

std::string Text(const Failed& line) {
  std::string text = "failed ";
  for (const auto& [fault, word] : kFaults) {
    if (fault == line.fault) text += word;
  }
  return text + " " + line.message;
}

std::optional<Line> ReadMeasured(std::string_view text) {
  Measured line;
  const bool good =
      Read(text, line.qpn) && Read(text, line.connect_ns) && Read(text, line.round_trips) &&
      Read(text, line.min_ns) && Read(text, line.median_ns) && Read(text, line.p99_ns) &&
      Read(text, line.bulk_bytes) && Read(text, line.bulk_bytes_per_second) && text.empty();
  if (!good) return std::nullopt;
  return line;
}

std::optional<Line> ReadPlain(std::string_view text) {
  PlainPath line;
  const bool good = Read(text, line.sent) && Read(text, line.received) &&
                    Read(text, line.reordered) && Read(text, line.dscp_kept) &&
                    Read(text, line.ecn_kept) && Read(text, line.ecn_marked) &&
                    Read(text, line.tcp_median_ns) && Read(text, line.tcp_bytes_per_second) &&
                    ReadOptional(text, line.clock_ahead_ns);
  if (!good || line.received > line.sent) return std::nullopt;
  line.problem = text;
  return line;
}

}  // namespace

std::string TextOf(const Line& line) {
  return std::visit([](const auto& kind) { return Text(kind); }, line) + "\n";
}

std::optional<Line> ReadLine(std::string_view text) {
  const std::string_view kind = NextWord(text);
  if (kind == "measured") return ReadMeasured(text);
  if (kind == "plain") return ReadPlain(text);
  if (kind == "listening") {
    Listening line;
    line.address = NextWord(text);
    if (line.address.empty() || !Read(text, line.port) || line.port == 0 || !text.empty())
      return std::nullopt;
    return line;
  }
  if (kind != "failed") return std::nullopt;
  const std::string_view word = NextWord(text);
  for (const auto& [fault, name] : kFaults) {
    if (name == word) return Failed{fault, std::string(text)};
  }
  return std::nullopt;
}

}  // namespace rocegw::probe
