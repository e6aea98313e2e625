// SPDX-License-Identifier: Apache-2.0
#include "proto/rules/formats.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "proto/rules/resource_name.h"

namespace rocegw::rules {
namespace {

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsLabelText(std::string_view text) {
  if (text.empty() || text.size() > 63) return false;
  const auto inner = [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  return IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::ranges::all_of(text, inner);
}

// Returns the length of the address in bytes; 0: not an address.
size_t ParseIp(std::string_view text, std::array<uint8_t, 16>& bytes) {
  const std::string terminated(text);
  if (inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1) return 4;
  if (inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) return 16;
  return 0;
}

bool IsIpPrefix(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  std::array<uint8_t, 16> bytes{};
  const size_t length = ParseIp(text.substr(0, slash), bytes);
  const std::string_view bits_text = text.substr(slash + 1);
  size_t bits = 0;
  const auto [end, error] =
      std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
  if (length == 0 || error != std::errc() || end != bits_text.data() + bits_text.size())
    return false;
  if (bits > length * 8) return false;
  for (size_t bit = bits; bit < length * 8; ++bit) {
    if ((bytes[bit / 8] >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

}  // namespace

bool IsLabelKey(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsLabelText(text);
  const std::string_view prefix = text.substr(0, slash);
  const auto inner = [](char c) {
    return (IsAlphanumeric(c) && !(c >= 'A' && c <= 'Z')) || c == '-' || c == '.';
  };
  return !prefix.empty() && prefix.size() <= 253 && std::ranges::all_of(prefix, inner) &&
         IsAlphanumeric(prefix.front()) && IsAlphanumeric(prefix.back()) &&
         IsLabelText(text.substr(slash + 1));
}

std::optional<std::string> CanonicalIp(std::string_view text) {
  std::array<uint8_t, 16> bytes{};
  const size_t length = ParseIp(text, bytes);
  if (length == 0) return std::nullopt;
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool mapped = length == 16 && std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
  const int family = length == 4 || mapped ? AF_INET : AF_INET6;
  std::array<char, INET6_ADDRSTRLEN> written{};
  inet_ntop(family, bytes.data() + (mapped ? kMapped.size() : 0), written.data(), written.size());
  return std::string(written.data());
}

bool IsHostIp(std::string_view text) {
  std::array<uint8_t, 16> bytes{};
  const size_t length = ParseIp(text, bytes);
  if (length == 16) {
    const bool unspecified = std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
    return !unspecified && bytes[0] != 0xff;
  }
  // 0.0.0.0/8 is "this network", 224.0.0.0/3 multicast and what is reserved.
  return length == 4 && bytes[0] != 0 && bytes[0] < 224;
}

bool IsLabelValue(std::string_view text) { return text.empty() || IsLabelText(text); }

std::string MismatchWithFormat(std::string_view text, types::v1::Format format) {
  std::array<uint8_t, 16> bytes{};
  switch (format) {
    case types::v1::DNS_LABEL:
      return IsDnsLabel(text) ? ""
                              : "is no DNS label: 1 to 63 of a-z, 0-9 and '-', not at the ends";
    case types::v1::IP_ADDRESS:
      return ParseIp(text, bytes) != 0 ? "" : "is no IP address";
    case types::v1::IP_PREFIX:
      return IsIpPrefix(text) ? "" : "is no prefix like 192.0.2.0/24 with nothing beyond its bits";
    case types::v1::LABEL_KEY:
      return IsLabelKey(text) ? ""
                              : "is no label key: at most 63 letters, digits, '-', '_' or '.', "
                                "with an optional DNS prefix and '/'";
    case types::v1::LABEL_VALUE:
      return IsLabelValue(text) ? ""
                                : "is no label value: at most 63 letters, digits, '-', '_' or '.'";
    case types::v1::UUID:
      return IsUuid(text) ? "" : "is no UUID";
    default:
      return "";
  }
}

}  // namespace rocegw::rules
