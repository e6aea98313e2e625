// SPDX-License-Identifier: Apache-2.0
// Configuration document of a daemon: one YAML mapping, from a text or a file, with all problems in
// it. Start-up and reload, one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gateway/process/yaml_section.h"

namespace rocegw::process {

// Reads the top-level keys; a key that it does not read is a problem.
using ReadTop = std::function<void(Section& top)>;

// Both return "FILE:LINE: text" for each problem; empty: the configuration is valid. An empty
// document is a mapping without keys.
std::vector<std::string> ParseDocument(const std::string& yaml, const std::string& file,
                                       const ReadTop& read);
std::vector<std::string> ReadDocument(const std::string& file, const ReadTop& read);

// A daemon's configuration.
template <typename Config>
struct ParsedConfig {
  Config config;
  std::vector<std::string> problems;  // "FILE:LINE: text"; empty: the configuration is valid
};
// Parses a text, whose source in problems is `file`, or reads a file. `read` fills in the values of
// the top-level keys.
template <typename Config>
ParsedConfig<Config> ParseConfigText(const std::string& yaml, const std::string& file,
                                     void (*read)(Section& top, Config& config)) {
  ParsedConfig<Config> parsed;
  parsed.problems = ParseDocument(yaml, file, [&](Section& top) { read(top, parsed.config); });
  return parsed;
}
template <typename Config>
ParsedConfig<Config> ReadConfigFile(const std::string& file,
                                    void (*read)(Section& top, Config& config)) {
  ParsedConfig<Config> parsed;
  parsed.problems = ReadDocument(file, [&](Section& top) { read(top, parsed.config); });
  return parsed;
}

// Returns what is wrong with a path, or "". A socket's path must fit an address of unix(7).
std::string CheckAbsolutePath(const std::string& text);
std::string CheckSocketPath(const std::string& text);

}  // namespace rocegw::process
