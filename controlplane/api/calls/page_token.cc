// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/page_token.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <charconv>

namespace rocegw::api {
namespace {

constexpr size_t kUsual = 100;
constexpr int32_t kMost = 1000;

}  // namespace

std::string MakePageToken(const PagePosition& position, std::string_view filter) {
  const std::string text =
      std::to_string(position.revision) + "\n" + position.last_key + "\n" + std::string(filter);
  return absl::WebSafeBase64Escape(absl::string_view(text.data(), text.size()));
}

std::optional<PagePosition> ReadPageToken(const std::string& token, std::string_view filter) {
  PagePosition position;
  if (token.empty()) return position;
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text)) return std::nullopt;
  const size_t first = text.find('\n');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = text.find('\n', first + 1);
  if (second == std::string::npos || std::string_view(text).substr(second + 1) != filter)
    return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + first, position.revision);
  if (error != std::errc() || end != text.data() + first || position.revision <= 0)
    return std::nullopt;
  position.last_key = text.substr(first + 1, second - first - 1);
  return position;
}

size_t EffectivePageSize(int32_t page_size) {
  if (page_size <= 0) return kUsual;
  return static_cast<size_t>(std::min(page_size, kMost));
}

}  // namespace rocegw::api
