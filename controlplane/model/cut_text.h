// SPDX-License-Identifier: Apache-2.0
// Texts of others that are kept, cut to a length. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace rocegw::model {

// At most so many bytes of a UTF-8 text, and no half of a character.
inline std::string CutText(const std::string& text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  const auto is_inner = [](char byte) { return (static_cast<unsigned char>(byte) >> 6) == 2; };
  size_t end = most_bytes;
  while (end > 0 && is_inner(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace rocegw::model
