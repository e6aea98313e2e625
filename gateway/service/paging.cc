// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/paging.h"

#include <charconv>
#include <cstdio>

namespace rocegw::service {

std::optional<uint32_t> EffectivePageSize(int32_t asked) {
  if (asked < 0) return std::nullopt;
  if (asked == 0) return kDefaultPageSize;
  return std::min(static_cast<uint32_t>(asked), kMaxPageSize);
}

std::string MakePageToken(char list, uint64_t last) {
  char text[32];
  std::snprintf(text, sizeof text, "%c%016llx", list, static_cast<unsigned long long>(last));
  return text;
}

std::optional<Position> ReadPageToken(char list, const std::string& token) {
  if (token.empty()) return Position{};
  Position position{true, 0};
  if (token.size() != 17 || token[0] != list) return std::nullopt;
  const char* end = token.data() + token.size();
  const auto parsed = std::from_chars(token.data() + 1, end, position.last, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return position;
}

}  // namespace rocegw::service
