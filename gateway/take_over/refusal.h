// SPDX-License-Identifier: Apache-2.0
// Reasons why a take-over does not happen (refusals.def). Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rocegw::take_over {

enum class Refusal : uint16_t {
#define ROCEGW_REFUSAL(name, number, label, text) k##name = (number),
#include "gateway/take_over/refusals.def"
#undef ROCEGW_REFUSAL
};

struct RefusalInfo {
  Refusal refusal;
  const char* label;  // for metrics
  const char* text;   // a single line
};

inline constexpr RefusalInfo kRefusals[] = {
#define ROCEGW_REFUSAL(name, number, label, text) {Refusal::k##name, label, text},
#include "gateway/take_over/refusals.def"
#undef ROCEGW_REFUSAL
};
inline constexpr size_t kRefusalCount = sizeof kRefusals / sizeof kRefusals[0];

// Returns the index in kRefusals; nothing: a newer program's number.
std::optional<size_t> IndexOf(Refusal refusal);
// Returns label and text; for a newer program's number a general one.
const char* LabelOf(Refusal refusal);
const char* TextOf(Refusal refusal);

}  // namespace rocegw::take_over
