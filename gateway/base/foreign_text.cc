// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/foreign_text.h"

#include <cstddef>
#include <cstdint>

namespace rocegw {
namespace {

struct Character {
  uint32_t code;
  size_t length;  // bytes; 0: the first byte begins no character
};

// Decodes the first character. Accepts only the shortest form of each code point, no surrogates
// (RFC 3629).
Character Decode(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return {0, 0};
  uint32_t code = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (at(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {0, 0};
  return {code, length};
}

bool IsPrintable(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  const bool changes_lines = code == 0x200e || code == 0x200f ||
                             (code >= 0x2028 && code <= 0x202e) ||
                             (code >= 0x2066 && code <= 0x2069);
  return !changes_lines;
}

void AppendEscaped(std::string& text, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    text += "\\x";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
}

std::string Printable(std::string_view bytes, std::string_view kept) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character character = Decode(bytes);
    const std::string_view piece = bytes.substr(0, character.length == 0 ? 1 : character.length);
    const bool keeps = character.length == 1 && kept.find(piece[0]) != std::string_view::npos;
    if (keeps || (character.length != 0 && IsPrintable(character.code))) {
      text += piece;
    } else {
      AppendEscaped(text, piece);
    }
    bytes.remove_prefix(piece.size());
  }
  return text;
}

}  // namespace

std::string ForeignText(std::string_view bytes) { return Printable(bytes, {}); }

std::string ForeignLines(std::string_view bytes) { return Printable(bytes, "\n\t"); }

}  // namespace rocegw
