// SPDX-License-Identifier: Apache-2.0
// Comparison of names before the C library's functions may be called: sanitizers replace those with
// functions that work only after their start, during which they look symbols up through our dlsym.
#pragma once

namespace rocegw::client {

// Compares like strcmp.
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

// Returns the part behind the last slash.
inline const char* FileOf(const char* path) {
  const char* file = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') file = path + 1;
  }
  return file;
}

}  // namespace rocegw::client
