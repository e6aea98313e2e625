// SPDX-License-Identifier: Apache-2.0
// Names of resources: "tenants/T", "tenants/T/pools/P", "gateways/G", ... Collections and ids in
// turns; ids are DNS labels (RFC 1123), those of tenants and pools at most 30 characters, because
// they become parts of longer labels. Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rocegw::rules {

enum class Collection { kTenants, kPools, kCcPolicies, kGateways, kRoleBindings, kOperations };

inline constexpr std::string_view kAny = "-";

struct ResourceName {
  Collection collection = Collection::kTenants;
  std::string id;      // of the last collection
  std::string parent;  // id of the tenant, for pools
  bool operator==(const ResourceName&) const = default;

  std::string Text() const;
  // "tenants/T" that the resource belongs to; empty: it belongs to no tenant.
  std::string Tenant() const;
};

// nullopt: no such collection, or an id is not one. wildcard: "-" may stand for an id.
std::optional<ResourceName> ParseResourceName(std::string_view text, bool wildcard = false);

// Of a text that was checked before. Of another one: a name without an id.
ResourceName NameOf(std::string_view text, bool wildcard = false);

// Does it have the form "tenants/*/pools/*"? An empty answer: yes; else a sentence that says what
// is wrong.
std::string MismatchWithPattern(std::string_view text, std::string_view pattern, bool wildcard);

bool IsDnsLabel(std::string_view text, size_t longest = 63);

// "pools"
std::string_view CollectionId(Collection collection);

}  // namespace rocegw::rules
