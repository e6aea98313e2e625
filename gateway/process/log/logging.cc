// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/log/logging.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "gateway/process/log/log_queue.h"

namespace rocegw::process {
namespace {

constexpr std::pair<const char*, LogLevel> kLogLevels[] = {{"trace", LogLevel::kTrace},
                                                           {"debug", LogLevel::kDebug},
                                                           {"info", LogLevel::kInfo},
                                                           {"warn", LogLevel::kWarn},
                                                           {"error", LogLevel::kError}};

spdlog::level::level_enum Level(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

constexpr Duration kFlushWithin = Seconds(1);

// Never destroyed: threads may log until the process ends.
LogQueue* queue = nullptr;

class QueueSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    queue->Append({line.data(), line.size()});
  }
  void flush_() override {}  // see FlushLog
};

// Formats the syslog priorities, "<6>" and so on.
class PriorityPrefix : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    static constexpr char kPriority[] = {'7', '7', '6', '4', '3', '2', '6'};
    out.push_back('<');
    out.push_back(kPriority[message.level]);
    out.push_back('>');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityPrefix>();
  }
};

// JOURNAL_STREAM names device and inode of the journal's stream: stderr may have been redirected
// since.
bool StderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  unsigned long long device = 0;
  unsigned long long inode = 0;
  struct stat info {};
  return stream != nullptr && std::sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
         fstat(STDERR_FILENO, &info) == 0 && info.st_dev == device && info.st_ino == inode;
}

}  // namespace

std::vector<std::pair<const char*, LogLevel>> LogLevels() {
  return {std::begin(kLogLevels), std::end(kLogLevels)};
}

std::optional<LogLevel> LogLevelFromName(std::string_view name) {
  for (const auto& [text, level] : kLogLevels) {
    if (name == text) return level;
  }
  return std::nullopt;
}

const char* LogLevelName(LogLevel level) { return kLogLevels[static_cast<size_t>(level)].first; }

void StartLogging(const std::string& program, LogLevel level) {
  if (queue == nullptr) {
    queue = new LogQueue(STDERR_FILENO);
    (void)std::atexit(FlushLog);
  }
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<QueueSink>());
  if (StderrIsJournal()) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PriorityPrefix>('*').set_pattern("%*%v");
    logger->set_formatter(std::move(formatter));
  } else {
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  }
  spdlog::set_default_logger(std::move(logger));
  SetLogLevel(level);
}

void FlushLog() {
  if (queue != nullptr) (void)queue->Flush(kFlushWithin);
}

uint64_t DroppedLogLines() { return queue == nullptr ? 0 : queue->dropped(); }

void SetLogLevel(LogLevel level) { spdlog::set_level(Level(level)); }

void ReloadLogLevel(const std::vector<std::string>& problems, LogLevel level) {
  for (const std::string& problem : problems) spdlog::error("reload: {}", problem);
  if (!problems.empty()) return;
  SetLogLevel(level);
  spdlog::info("reload: log level {}; other keys take effect at the next start",
               LogLevelName(level));
}

}  // namespace rocegw::process
