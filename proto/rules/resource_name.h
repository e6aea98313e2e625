// SPDX-License-Identifier: Apache-2.0
// Resource names: "tenants/T", "tenants/T/pools/P", "gateways/G", "gateways/G/donors/D", ...
// Collections and ids alternate; ids are DNS labels (RFC 1123), those of tenants, pools and donors
// at most 30 characters, because they become parts of longer labels. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rocegw::rules {

enum class Collection {
  kTenants,
  kPools,
  kCcPolicies,
  kGateways,
  kRoleBindings,
  kOperations,
  kDonors
};

inline constexpr std::string_view kAny = "-";

struct ResourceName {
  Collection collection = Collection::kTenants;
  std::string id;      // id in the last collection
  std::string parent;  // id of the tenant, for pools; of the gateway, for donors
  bool operator==(const ResourceName&) const = default;

  std::string Text() const;
  // Returns the resource's tenant "tenants/T"; empty: none.
  std::string Tenant() const;
};

// Parses a name. nullopt: unknown collection, or an invalid id. `wildcard`: "-" may stand for an
// id.
std::optional<ResourceName> ParseResourceName(std::string_view text, bool wildcard = false);

// Parses a checked text. Another text gives a name without an id.
ResourceName NameOf(std::string_view text, bool wildcard = false);

// Returns "" if the text matches a pattern such as "tenants/*/pools/*"; else a sentence about the
// error.
std::string MismatchWithPattern(std::string_view text, std::string_view pattern, bool wildcard);

bool IsDnsLabel(std::string_view text, size_t longest = 63);

// "pools"
std::string_view CollectionId(Collection collection);
// "tenants" for pools; empty: the collection has no parent.
std::string_view ParentCollectionId(Collection collection);

}  // namespace rocegw::rules
