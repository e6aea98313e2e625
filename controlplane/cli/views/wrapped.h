// SPDX-License-Identifier: Apache-2.0
// Wrapping of sentences into lines of 80 characters. Pure. The text may be foreign: control
// characters are escaped.
#pragma once

#include <sstream>
#include <string>

#include "gateway/base/foreign_text.h"

namespace rocegw::cli {

inline std::string Wrapped(const std::string& text, const std::string& indent) {
  constexpr size_t kLine = 80;
  std::istringstream words(ForeignLines(text));
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
