// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/refusal.h"

namespace rocegw::take_over {

std::optional<size_t> IndexOf(Refusal refusal) {
  for (size_t i = 0; i < kRefusalCount; ++i)
    if (kRefusals[i].refusal == refusal) return i;
  return std::nullopt;
}

const char* LabelOf(Refusal refusal) {
  const auto index = IndexOf(refusal);
  return index ? kRefusals[*index].label : "other";
}

const char* TextOf(Refusal refusal) {
  const auto index = IndexOf(refusal);
  return index ? kRefusals[*index].text : "a reason that this version does not know";
}

}  // namespace rocegw::take_over
