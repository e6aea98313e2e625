// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/simulate/failure.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "gateway/base/foreign_text.h"

namespace rocegw::migration {
namespace {

// In the order of the enumerators.
constexpr auto kKinds = std::to_array<std::string_view>(
    {"fail", "hang", "never", "garbage", "inconclusive", "lost", "fallback", "config", "data",
     "version", "drift", "controller", "agent", "gate", "gate-unknown"});

constexpr int64_t kLongestBack = 366LL * 86'400;

std::optional<int64_t> Number(std::string_view text, int64_t most) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > most)
    return std::nullopt;
  return number;
}

// Returns the index of a name, or of a number from 1.
template <typename Items>
std::optional<uint32_t> Find(const Items& items, std::string_view text) {
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].name == text) return i;
  }
  const auto number = Number(text, static_cast<int64_t>(items.size()));
  if (!number.has_value()) return std::nullopt;
  return static_cast<uint32_t>(*number - 1);
}

bool ReadPart(std::string_view key, std::string_view value, const Plan& plan, Failure& failure) {
  if (key == "node") return (failure.node = Find(plan.nodes, value)).has_value();
  if (key == "wave") return (failure.wave = Find(plan.waves, value)).has_value();
  if (key == "step") return (failure.step = FromWord<Step>(value)).has_value();
  if (key == "kind") {
    const auto* const kind = std::ranges::find(kKinds, value);
    failure.kind = static_cast<FailureKind>(kind - kKinds.begin());
    return kind != kKinds.end();
  }
  const auto number = Number(value, kLongestBack);
  if (!number.has_value()) return false;
  if (key == "times") failure.times = static_cast<uint32_t>(*number);
  if (key == "back") failure.back_after = *number;
  return key == "times" || key == "back";
}

}  // namespace

std::string FailureKinds() {
  std::string all;
  for (const std::string_view kind : kKinds) {
    if (!all.empty()) all += ", ";
    all += kind;
  }
  return all;
}

Failure ReadFailure(std::string_view text, const Plan& plan, std::string& problem) {
  problem.clear();
  Failure failure;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos ||
        !ReadPart(part.substr(0, equals), part.substr(equals + 1), plan, failure)) {
      problem = "'" + ForeignText(part.substr(0, 64)) +
                "' is not node=NODE, wave=WAVE, step=STEP, kind=KIND, times=N or back=SECONDS";
      return {};
    }
    begin = end + 1;
  }
  const bool of_gate =
      failure.kind == FailureKind::kGate || failure.kind == FailureKind::kGateUnknown;
  if (of_gate && !failure.wave.has_value()) problem = "a gate fails in a wave: wave=WAVE";
  if (!of_gate && !failure.node.has_value()) problem = "a failure happens at a node: node=NODE";
  return failure;
}

}  // namespace rocegw::migration
