// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/log/foreign_lines.h"

#include <spdlog/spdlog.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace rocegw::process {
namespace {

constexpr size_t kLongestLine = 1000;

// Text of a library can hold what a peer sent.
std::string Printable(std::string_view text) {
  std::string line(text.substr(0, kLongestLine));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return line;
}

spdlog::level::level_enum LevelOf(ForeignLevel level) {
  switch (level) {
    case ForeignLevel::kDebug:
      return spdlog::level::debug;
    case ForeignLevel::kInfo:
      return spdlog::level::info;
    case ForeignLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

ssize_t WriteLines(void* cookie, const char* text, size_t size) {
  static_cast<ForeignLines*>(cookie)->Log(ForeignLevel::kError, {text, size});
  return static_cast<ssize_t>(size);
}

}  // namespace

TimePoint ForeignLines::Now() {
  return TimePoint{std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count()};
}

void ForeignLines::LogAt(ForeignLevel level, std::string_view text, TimePoint now) {
  const spdlog::level::level_enum as = LevelOf(level);
  if (!spdlog::should_log(as)) return;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line = Printable(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    uint64_t left_out = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!has_begun_ || now - period_begin_ >= kPeriod) {
        has_begun_ = true;
        period_begin_ = now;
        in_period_ = 0;
        left_out = std::exchange(left_out_, 0);
      }
      if (++in_period_ > kMostPerPeriod) {
        ++left_out_;
        continue;
      }
    }
    if (left_out != 0) spdlog::warn("{}: {} lines were left out", library_, left_out);
    spdlog::log(as, "{}: {}", library_, line);
  }
}

std::FILE* ForeignStream(const std::string& library) {
  // The library may write until the process ends.
  auto* const lines = new ForeignLines(library);
  std::FILE* const stream = ::fopencookie(
      lines, "w", {.read = nullptr, .write = WriteLines, .seek = nullptr, .close = nullptr});
  if (stream != nullptr) std::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
  return stream;
}

}  // namespace rocegw::process
