// SPDX-License-Identifier: Apache-2.0
// Texts of others that are kept and come to logs and terminals. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace rocegw::model {

// At most so many bytes of a UTF-8 text, no half of a character, and nothing that moves a cursor.
inline std::string PlainText(const std::string& text, size_t most_bytes) {
  const auto is_inner = [](char byte) { return (static_cast<unsigned char>(byte) >> 6) == 2; };
  size_t end = std::min(text.size(), most_bytes);
  while (end > 0 && end < text.size() && is_inner(text[end])) --end;
  std::string plain = text.substr(0, end);
  const auto is_control = [](char byte) {
    return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
  };
  std::ranges::replace_if(plain, is_control, '?');
  return plain;
}

}  // namespace rocegw::model
