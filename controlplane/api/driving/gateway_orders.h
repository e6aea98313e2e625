// SPDX-License-Identifier: Apache-2.0
// Exclusion of upgrades and migrations of the same gateways: each reads the row of
// kGatewayOrdersKey before it looks for orders of the other kind, and its own transaction fails if
// another order was stored since then. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controlplane/store/transaction.h"

namespace rocegw::api {

// Key whose value is the name of the newest upgrade or migration.
inline constexpr std::string_view kGatewayOrdersKey = "gateway-orders";

// Adds this condition to the transaction that stores the order "upgrades/U" or "migrations/M".
// `read`: the row as it was read.
inline void ExcludeOrdersSince(const std::optional<store::Entry>& read, const std::string& name,
                               store::Transaction& transaction) {
  transaction.compares.push_back(
      store::Compare::ModifiedAt(kGatewayOrdersKey, read.has_value() ? read->mod_revision : 0));
  transaction.then.push_back(store::Operation::Put(kGatewayOrdersKey, name));
}

}  // namespace rocegw::api
