// SPDX-License-Identifier: Apache-2.0
// Rows of an upgrade in the store: a spec, which is written once, a head, and rows of gateways. One
// row names the upgrade in progress, so that two exclude each other. Each step is one transaction
// that compares the head's revision, so that two writers cannot both go on from one state. Pure;
// any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/store/transaction.h"
#include "controlplane/upgrades/upgrade_rules.h"

namespace rocegw::upgrades {

// Gateways of one row: a new upgrade of kMostGateways fits one transaction.
inline constexpr int kGatewaysPerRow = 32;
inline constexpr std::string_view kUpgradePrefix = "upgrade/";
// Key whose value is the id of the upgrade in progress.
inline constexpr std::string_view kActiveKey = "upgrade-active";

struct StoredUpgrade {
  std::string id;  // "u" of "upgrades/u"
  admin::v1::Upgrade upgrade;
  store::Revision revision = 0;  // the head's
};

// "upgrade/U/": prefix of all rows.
std::string PrefixOf(const std::string& id);
std::string HeadKey(const std::string& id);
// Returns the id of a key below kUpgradePrefix.
std::string IdOfKey(std::string_view key);

// Puts an upgrade together from the entries below its prefix. `problem`: why they are none, one
// line; empty: they are.
StoredUpgrade ReadUpgrade(const std::string& id, const std::vector<store::Entry>& entries,
                          std::string& problem);

// Transactions without audit record and fence.
store::Transaction CreationOf(const StoredUpgrade& stored);
// `after`: the stored upgrade after the step.
store::Transaction StepOf(const StoredUpgrade& stored, const admin::v1::Upgrade& after,
                          const Step& step);
// Deletes an upgrade that has ended.
store::Transaction DeletionOf(const StoredUpgrade& stored);
// Deletes an upgrade whose rows cannot be read, also one in progress. `entries`: its rows, at least
// one. `active`: entry of kActiveKey.
store::Transaction DeletionOfUnreadable(const std::string& id,
                                        const std::vector<store::Entry>& entries,
                                        const std::optional<store::Entry>& active);

// Returns the audit record of the changes. `peer`: host and process of the controller that made
// them, or what a person's call came from.
store::Operation AuditOfChanges(const std::string& id, const std::string& peer, const Step& step);

}  // namespace rocegw::upgrades
