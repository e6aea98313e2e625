// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/label_selector.h"

#include <algorithm>

#include "controlplane/model/formats.h"

namespace rocegw::model {

std::optional<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view term = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    Kind kind = Kind::kHas;
    std::string_view value;
    if (const size_t equals = term.find('='); equals != std::string_view::npos) {
      kind = equals > 0 && term[equals - 1] == '!' ? Kind::kDiffers : Kind::kEquals;
      value = term.substr(equals + 1);
      term = term.substr(0, kind == Kind::kDiffers ? equals - 1 : equals);
    } else if (term.starts_with('!')) {
      kind = Kind::kHasNot;
      term.remove_prefix(1);
    }
    if (!IsLabelKey(term) || !IsLabelValue(value)) return std::nullopt;
    selector.terms_.push_back({kind, std::string(term), std::string(value)});
  }
  return selector;
}

bool LabelSelector::Matches(const Labels& labels) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const auto found = labels.find(term.key);
    const bool has = found != labels.end();
    switch (term.kind) {
      case Kind::kEquals:
        return has && found->second == term.value;
      case Kind::kDiffers:
        return !has || found->second != term.value;
      case Kind::kHas:
        return has;
      case Kind::kHasNot:
        return !has;
    }
    return false;
  });
}

bool Selects(const types::v1::GatewaySelector& selector, const types::v1::Gateway& gateway) {
  if (selector.all() || std::ranges::count(selector.names(), gateway.name()) != 0) return true;
  if (selector.labels().empty()) return false;
  const Labels& labels = gateway.meta().labels();
  return std::ranges::all_of(selector.labels(), [&](const auto& wanted) {
    const auto found = labels.find(wanted.first);
    return found != labels.end() && found->second == wanted.second;
  });
}

}  // namespace rocegw::model
