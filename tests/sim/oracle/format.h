// SPDX-License-Identifier: Apache-2.0
// printf into a string.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

namespace rocegw::sim {

[[gnu::format(printf, 1, 2)]] inline std::string Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

// Converts a number for %llu.
constexpr unsigned long long Wide(uint64_t number) { return number; }

}  // namespace rocegw::sim
