// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/own_preload.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/client/process/environment.h"

namespace rocegw::client {
namespace {

constexpr char kOurs[] = "librocegw-verbs.so";
// Separators of the dynamic linker (ld.so(8)).
constexpr char kSeparators[] = ": ";

bool IsOurs(const char* name, size_t length) {
  constexpr size_t kLength = sizeof(kOurs) - 1;
  if (length < kLength || memcmp(name + length - kLength, kOurs, kLength) != 0) return false;
  return length == kLength || name[length - kLength - 1] == '/';
}

}  // namespace

void FindOwnPreload(char* text, size_t size) {
  size_t used = 0;
  const char* const slot = Setting("ROCEGW_SLOT");
  const char* at = Setting("LD_PRELOAD");
  while (slot != nullptr && at != nullptr && *at != '\0') {
    const size_t length = strcspn(at, kSeparators);
    if (length != 0 && !IsOurs(at, length)) {
      const size_t colon = used == 0 ? 0 : 1;
      if (used + colon + length >= size) break;
      if (colon != 0) text[used] = ':';
      memcpy(text + used + colon, at, length);
      used += colon + length;
    }
    at += length;
    if (*at != '\0') ++at;
  }
  text[used] = '\0';
}

}  // namespace rocegw::client
