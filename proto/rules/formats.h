// SPDX-License-Identifier: Apache-2.0
// Forms that texts of the API have (enum Format of types/v1/annotations.proto). Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rocegw/types/v1/annotations.pb.h"

namespace rocegw::rules {

// Empty: the text has the form; else a sentence that says what is wrong.
std::string MismatchWithFormat(std::string_view text, types::v1::Format format);

// The one way to write the address ("2001:db8::1", an IPv4 address in IPv6 as IPv4), so that equal
// addresses are equal texts. nullopt: it is none.
std::optional<std::string> CanonicalIp(std::string_view text);

// An address that one host can have: not the unspecified one, no multicast, no broadcast. `text` is
// canonical.
bool IsHostIp(std::string_view text);

// As Kubernetes has them: "app", "example.com/app"; "", "v1.2".
bool IsLabelKey(std::string_view text);
bool IsLabelValue(std::string_view text);

}  // namespace rocegw::rules
