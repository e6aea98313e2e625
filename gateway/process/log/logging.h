// SPDX-License-Identifier: Apache-2.0
// Log set-up of a daemon: lines go to stderr. Under the journal they carry the priority prefix of
// sd-daemon(3) and no time, since the journal adds its own; elsewhere time and level. Logging never
// blocks: a thread writes, and lines that do not fit its queue are dropped and counted. Never used
// on the packet path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rocegw::process {

enum class LogLevel : uint8_t { kTrace, kDebug, kInfo, kWarn, kError };

std::optional<LogLevel> LogLevelFromName(std::string_view name);
const char* LogLevelName(LogLevel level);
// Returns all levels, for a configuration's reader.
std::vector<std::pair<const char*, LogLevel>> LogLevels();

void StartLogging(const std::string& program, LogLevel level);
// Waits until all lines are written, at most a second. A regular exit calls it.
void FlushLog();
// Returns the number of lines dropped because the log's reader was too slow.
uint64_t DroppedLogLines();
void SetLogLevel(LogLevel level);
// Handles SIGHUP: sets the level, or logs the problems of the configuration that was read again.
void ReloadLogLevel(const std::vector<std::string>& problems, LogLevel level);

}  // namespace rocegw::process
