// SPDX-License-Identifier: Apache-2.0
// Log set-up of a daemon: lines go to stderr. Under the journal they carry the priority prefix of
// sd-daemon(3) and no time, since the journal adds its own; elsewhere time and level. A line never
// waits for its reader: a thread writes, what does not fit its queue is dropped and counted. Never
// called on the packet path.
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
// All of them, for a configuration's reader.
std::vector<std::pair<const char*, LogLevel>> LogLevels();

void StartLogging(const std::string& program, LogLevel level);
// Waits until all lines are written, at most a second. Runs at a regular exit by itself.
void FlushLog();
// Lines that were not written because nothing read the log.
uint64_t DroppedLogLines();
void SetLogLevel(LogLevel level);
// What SIGHUP does: takes the level over, unless the configuration that was read anew has problems,
// which are logged.
void ReloadLogLevel(const std::vector<std::string>& problems, LogLevel level);

}  // namespace rocegw::process
