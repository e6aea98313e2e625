// SPDX-License-Identifier: Apache-2.0
// Files of /proc and /sys as text. Blocking.
#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace rocegw::doctor {

// Returns "" if the file cannot be read.
inline std::string ReadSmallFile(const std::string& path) {
  std::ostringstream text;
  if (const std::ifstream file(path); file) text << file.rdbuf();
  return text.str();
}

inline std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Returns the number at the file's start; nothing if there is none.
inline std::optional<uint64_t> ReadNumberFile(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

}  // namespace rocegw::doctor
