// SPDX-License-Identifier: Apache-2.0
// Amounts as Kubernetes writes them (resource.Quantity): "64", "5G", "1.5Gi", "2e9", "500m". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rocegw::agent {

// Returns the amount, rounded up to a whole number. nullopt: not an amount, negative, or 2^63 and
// more.
std::optional<uint64_t> ParseQuantity(std::string_view text);

}  // namespace rocegw::agent
