// SPDX-License-Identifier: Apache-2.0
// Selection of objects by labels. Two forms: text in list requests ("tier=gold,!old,zone!=b"), and
// the map of a pool's gateway selector. Any thread.
#pragma once

#include <google/protobuf/map.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rocegw/types/v1/gateway.pb.h"
#include "rocegw/types/v1/pool.pb.h"

namespace rocegw::model {

using Labels = google::protobuf::Map<std::string, std::string>;

class LabelSelector {
 public:
  // Parses "key=value", "key!=value", "key" (present), "!key" (absent), joined by commas; all must
  // hold. Empty: everything. nullopt: invalid.
  static std::optional<LabelSelector> Parse(std::string_view text);
  bool Matches(const Labels& labels) const;

 private:
  enum class Kind { kEquals, kDiffers, kHas, kHasNot };
  struct Term {
    Kind kind;
    std::string key;
    std::string value;
  };
  std::vector<Term> terms_;
};

bool Selects(const types::v1::GatewaySelector& selector, const types::v1::Gateway& gateway);

}  // namespace rocegw::model
