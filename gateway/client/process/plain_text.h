// SPDX-License-Identifier: Apache-2.0
// Comparison of names where the C library's functions may not be called yet: sanitizers replace
// those with functions that work only after their start, which looks symbols up through our dlsym.
#pragma once

namespace rocegw::client {

// As strcmp.
inline int CompareText(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}

inline bool BeginsWith(const char* text, const char* start) {
  while (*start != '\0' && *text == *start) {
    ++text;
    ++start;
  }
  return *start == '\0';
}

// What follows the last slash.
inline const char* FileOf(const char* path) {
  const char* file = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') file = path + 1;
  }
  return file;
}

}  // namespace rocegw::client
