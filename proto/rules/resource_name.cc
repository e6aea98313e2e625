// SPDX-License-Identifier: Apache-2.0
#include "proto/rules/resource_name.h"

#include <algorithm>
#include <array>
#include <vector>

namespace rocegw::rules {
namespace {

struct CollectionRow {
  Collection collection;
  std::string_view id;
  size_t longest;
  std::string_view parent = {};  // collection above it
};

constexpr std::array kCollections = {
    CollectionRow{Collection::kTenants, "tenants", 30},
    CollectionRow{Collection::kPools, "pools", 30, "tenants"},
    CollectionRow{Collection::kCcPolicies, "ccPolicies", 63},
    CollectionRow{Collection::kGateways, "gateways", 63},
    CollectionRow{Collection::kRoleBindings, "roleBindings", 63},
    CollectionRow{Collection::kOperations, "operations", 63},
    CollectionRow{Collection::kDonors, "donors", 30, "gateways"},
};

const CollectionRow* FindCollection(std::string_view id) {
  const auto* const row = std::ranges::find(kCollections, id, &CollectionRow::id);
  return row == kCollections.end() ? nullptr : row;
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

bool IsId(std::string_view id, size_t longest, bool wildcard) {
  return (wildcard && id == kAny) || IsDnsLabel(id, longest);
}

}  // namespace

std::string_view CollectionId(Collection collection) {
  return std::ranges::find(kCollections, collection, &CollectionRow::collection)->id;
}

std::string_view ParentCollectionId(Collection collection) {
  return std::ranges::find(kCollections, collection, &CollectionRow::collection)->parent;
}

bool IsDnsLabel(std::string_view text, size_t longest) {
  if (text.empty() || text.size() > longest) return false;
  const auto inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return text.front() != '-' && text.back() != '-' && std::ranges::all_of(text, inner);
}

std::string ResourceName::Text() const {
  std::string text;
  if (const std::string_view above = ParentCollectionId(collection); !above.empty())
    text = std::string(above) + "/" + parent + "/";
  text += CollectionId(collection);
  return text + "/" + id;
}

std::string ResourceName::Tenant() const {
  if (collection == Collection::kTenants) return Text();
  if (collection == Collection::kPools) return "tenants/" + parent;
  return {};
}

std::optional<ResourceName> ParseResourceName(std::string_view text, bool wildcard) {
  const std::vector<std::string_view> parts = Split(text);
  if (parts.size() != 2 && parts.size() != 4) return std::nullopt;
  ResourceName name;
  const CollectionRow* const row = FindCollection(parts[parts.size() - 2]);
  if (row == nullptr || row->parent.empty() != (parts.size() == 2)) return std::nullopt;
  if (parts.size() == 4) {
    const CollectionRow* const above = FindCollection(parts[0]);
    if (parts[0] != row->parent || !IsId(parts[1], above->longest, wildcard)) return std::nullopt;
    name.parent = parts[1];
  }
  if (!IsId(parts.back(), row->longest, wildcard)) return std::nullopt;
  name.collection = row->collection;
  name.id = parts.back();
  return name;
}

ResourceName NameOf(std::string_view text, bool wildcard) {
  return ParseResourceName(text, wildcard).value_or(ResourceName());
}

std::string MismatchWithPattern(std::string_view text, std::string_view pattern, bool wildcard) {
  const std::vector<std::string_view> want = Split(pattern);
  const std::vector<std::string_view> have = Split(text);
  const std::string wanted = "must have the form " + std::string(pattern);
  if (want.size() != have.size()) return wanted;
  size_t longest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] != "*") {
      if (want[i] != have[i]) return wanted;
      const CollectionRow* const row = FindCollection(want[i]);
      longest = row == nullptr ? 63 : row->longest;
    } else if (!IsId(have[i], longest, wildcard)) {
      return "'" + std::string(have[i]) + "' is not an id: 1 to " + std::to_string(longest) +
             " of a-z, 0-9 and '-', not at the ends";
    }
  }
  return {};
}

}  // namespace rocegw::rules
