// SPDX-License-Identifier: Apache-2.0
// Comparison of words without regard to case.
#pragma once

#include <string>
#include <string_view>

namespace rocegw {

// Returns the text with small letters. Only ASCII letters change, whatever the locale is.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace rocegw
