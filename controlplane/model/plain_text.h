// SPDX-License-Identifier: Apache-2.0
// Foreign texts that are stored and shown in logs and terminals. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace rocegw::model {

// Truncates a UTF-8 text to so many bytes at a character boundary, without control characters.
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
