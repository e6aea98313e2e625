// SPDX-License-Identifier: Apache-2.0
// Sentences in lines of 80 characters. Pure.
#pragma once

#include <sstream>
#include <string>

namespace rocegw::cli {

inline std::string Wrapped(const std::string& text, const std::string& indent) {
  constexpr size_t kLine = 80;
  std::istringstream words(text);
  std::string out;
  std::string line = indent;
  for (std::string word; words >> word;) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kLine) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() == indent.size() ? "" : " ") + word;
  }
  return out + line + "\n";
}

}  // namespace rocegw::cli
