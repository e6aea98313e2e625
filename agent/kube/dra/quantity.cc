// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace rocegw::agent {
namespace {

constexpr long double kBeyond = 9223372036854775808.0L;  // 2^63

// Unit of a suffix. The smaller ones divide, since their factors have no exact value.
struct Unit {
  long double factor = 1;
  long double divisor = 1;
};

std::optional<Unit> UnitOf(std::string_view suffix) {
  constexpr std::string_view kPowers = "kMGTPE";
  constexpr std::string_view kBinaryPowers = "KMGTPE";
  if (suffix.empty()) return Unit{};
  if (suffix == "n") return Unit{1, 1e9L};
  if (suffix == "u") return Unit{1, 1e6L};
  if (suffix == "m") return Unit{1, 1e3L};
  const bool binary = suffix.size() == 2 && suffix[1] == 'i';
  if (!binary && suffix.size() != 1) return std::nullopt;
  const size_t power = (binary ? kBinaryPowers : kPowers).find(suffix[0]);
  if (power == std::string_view::npos) return std::nullopt;
  Unit unit;
  for (size_t i = 0; i <= power; ++i) unit.factor *= binary ? 1024 : 1000;
  return unit;
}

// Rounds up, except for what the parts of a decimal fraction add to a whole number.
long double RoundedUp(long double amount) {
  const long double nearest = std::round(amount);
  return std::fabs(amount - nearest) < 1e-6L ? nearest : std::ceil(amount);
}

}  // namespace

std::optional<uint64_t> ParseQuantity(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  // The parser below also takes a sign and words such as "inf".
  if (text.empty() || text.find_first_of("0123456789.") != 0) return std::nullopt;
  long double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const std::optional<Unit> unit = UnitOf(text);
  if (!unit) return std::nullopt;
  const long double exact = number * unit->factor / unit->divisor;
  // The least amount is one, however small.
  const long double amount = exact > 0 ? std::max(RoundedUp(exact), 1.0L) : 0;
  if (!(amount < kBeyond)) return std::nullopt;
  return static_cast<uint64_t>(amount);
}

}  // namespace rocegw::agent
