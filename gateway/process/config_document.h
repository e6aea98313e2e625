// SPDX-License-Identifier: Apache-2.0
// A daemon's configuration as a whole: one YAML mapping, from a text or a file, with everything
// that is wrong with it. Start-up and reload, one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gateway/process/yaml_section.h"

namespace rocegw::process {

// Reads the keys of the top; what it does not read is a problem.
using ReadTop = std::function<void(Section& top)>;

// Both return "FILE:LINE: text" for each problem; none: the configuration is good. An empty
// document is a mapping without keys.
std::vector<std::string> ParseDocument(const std::string& yaml, const std::string& file,
                                       const ReadTop& read);
std::vector<std::string> ReadDocument(const std::string& file, const ReadTop& read);

// What is wrong with a path, or "". That of a socket must fit an address of unix(7).
std::string CheckAbsolutePath(const std::string& text);
std::string CheckSocketPath(const std::string& text);

}  // namespace rocegw::process
