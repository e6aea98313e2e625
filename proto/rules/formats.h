// SPDX-License-Identifier: Apache-2.0
// Text formats of the API (enum Format of types/v1/annotations.proto). Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rocegw/types/v1/annotations.pb.h"

namespace rocegw::rules {

// Returns "" if the text has the format; else a sentence about the error.
std::string MismatchWithFormat(std::string_view text, types::v1::Format format);

// Returns the canonical form of the address ("2001:db8::1"; an IPv4 address in IPv6 as IPv4), so
// that equal addresses are equal texts. nullopt: not an address.
std::optional<std::string> CanonicalIp(std::string_view text);

// Returns true for an address of one host: not unspecified, multicast or broadcast. `text` is
// canonical.
bool IsHostIp(std::string_view text);

// Keys and values as in Kubernetes: "app", "example.com/app"; "", "v1.2".
bool IsLabelKey(std::string_view text);
bool IsLabelValue(std::string_view text);

}  // namespace rocegw::rules
