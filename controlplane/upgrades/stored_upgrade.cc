// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/stored_upgrade.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "controlplane/api/calls/audit_note.h"

namespace rocegw::upgrades {
namespace {

using admin::v1::Upgrade;

// Rows of a damaged upgrade that one transaction deletes; an upgrade has fewer.
constexpr size_t kMostDeleted = 100;

std::string RowKey(const std::string& id, int row) {
  std::array<char, 24> number{};
  std::snprintf(number.data(), number.size(), "gateways/%05d", row);
  return PrefixOf(id) + number.data();
}

int RowsOf(const Upgrade& upgrade) {
  return (upgrade.gateways_size() + kGatewaysPerRow - 1) / kGatewaysPerRow;
}

std::string SpecKey(const std::string& id) { return PrefixOf(id) + "spec"; }

store::Operation PutHead(const std::string& id, const Upgrade& upgrade) {
  Upgrade head = upgrade;
  head.clear_gateways();
  head.clear_spec();
  return store::Operation::Put(HeadKey(id), head.SerializeAsString());
}

store::Operation PutSpec(const std::string& id, const Upgrade& upgrade) {
  Upgrade part;
  *part.mutable_spec() = upgrade.spec();
  return store::Operation::Put(SpecKey(id), part.SerializeAsString());
}

store::Operation PutRow(const std::string& id, const Upgrade& upgrade, int row) {
  Upgrade part;
  const int first = row * kGatewaysPerRow;
  const int last = std::min(first + kGatewaysPerRow, upgrade.gateways_size());
  for (int i = first; i < last; ++i) *part.add_gateways() = upgrade.gateways(i);
  return store::Operation::Put(RowKey(id, row), part.SerializeAsString());
}

}  // namespace

std::string PrefixOf(const std::string& id) { return std::string(kUpgradePrefix) + id + "/"; }
std::string HeadKey(const std::string& id) { return PrefixOf(id) + "head"; }

std::string IdOfKey(std::string_view key) {
  key.remove_prefix(std::min(kUpgradePrefix.size(), key.size()));
  return std::string(key.substr(0, key.find('/')));
}

StoredUpgrade ReadUpgrade(const std::string& id, const std::vector<store::Entry>& entries,
                          std::string& problem) {
  StoredUpgrade stored{.id = id, .upgrade = {}};
  problem.clear();
  Upgrade spec;
  Upgrade gateways;
  for (const store::Entry& entry : entries) {
    Upgrade part;
    if (!part.ParseFromString(entry.value)) problem = "its rows are damaged";
    if (entry.key == HeadKey(id)) {
      stored.upgrade.Swap(&part);
      stored.revision = entry.mod_revision;
    } else if (entry.key == SpecKey(id)) {
      spec.Swap(&part);
    } else {
      gateways.mutable_gateways()->MergeFrom(part.gateways());
    }
  }
  if (!spec.has_spec()) problem = "its rows are not complete";
  stored.upgrade.mutable_spec()->Swap(spec.mutable_spec());
  stored.upgrade.mutable_gateways()->Swap(gateways.mutable_gateways());
  uint64_t counted = 0;
  for (const auto& [state, count] : stored.upgrade.counts()) counted += count;
  if (stored.revision == 0 || counted != static_cast<uint64_t>(stored.upgrade.gateways_size()))
    problem = "its rows are not complete";
  return stored;
}

store::Transaction CreationOf(const StoredUpgrade& stored) {
  store::Transaction transaction;
  transaction.compares = {store::Compare::Absent(HeadKey(stored.id)),
                          store::Compare::Absent(kActiveKey)};
  transaction.then = {PutHead(stored.id, stored.upgrade), PutSpec(stored.id, stored.upgrade),
                      store::Operation::Put(kActiveKey, stored.id)};
  for (int row = 0; row < RowsOf(stored.upgrade); ++row)
    transaction.then.push_back(PutRow(stored.id, stored.upgrade, row));
  return transaction;
}

store::Transaction StepOf(const StoredUpgrade& stored, const Upgrade& after, const Step& step) {
  store::Transaction transaction;
  transaction.compares = {store::Compare::ModifiedAt(HeadKey(stored.id), stored.revision)};
  transaction.then = {PutHead(stored.id, after)};
  std::set<int> rows;
  for (const int gateway : step.gateways) rows.insert(gateway / kGatewaysPerRow);
  for (const int row : rows) transaction.then.push_back(PutRow(stored.id, after, row));
  if (HasEnded(after)) transaction.then.push_back(store::Operation::Delete(kActiveKey));
  return transaction;
}

store::Transaction DeletionOf(const StoredUpgrade& stored) {
  store::Transaction transaction;
  transaction.compares = {store::Compare::ModifiedAt(HeadKey(stored.id), stored.revision)};
  transaction.then = {store::Operation::Delete(HeadKey(stored.id)),
                      store::Operation::Delete(SpecKey(stored.id))};
  for (int row = 0; row < RowsOf(stored.upgrade); ++row)
    transaction.then.push_back(store::Operation::Delete(RowKey(stored.id, row)));
  return transaction;
}

store::Transaction DeletionOfUnreadable(const std::string& id,
                                        const std::vector<store::Entry>& entries,
                                        const std::optional<store::Entry>& active) {
  store::Transaction transaction;
  for (const store::Entry& entry : entries) {
    transaction.then.push_back(store::Operation::Delete(entry.key));
    if (transaction.then.size() == kMostDeleted) break;
  }
  transaction.compares = {
      store::Compare::ModifiedAt(entries.front().key, entries.front().mod_revision)};
  if (active.has_value() && active->value == id) {
    transaction.compares.push_back(store::Compare::HasValue(kActiveKey, id));
    transaction.then.push_back(store::Operation::Delete(kActiveKey));
  }
  return transaction;
}

store::Operation AuditOfChanges(const std::string& id, const std::string& peer, const Step& step) {
  auto changes = nlohmann::json::array();
  for (const Change& change : step.changes)
    changes.push_back({change.subject, change.before, change.after, change.reason});
  const api::Call call{
      .principal = "controller",
      .peer = peer,
      .method = "upgrade",
      .request_id = {},
      .request_digest = {},
      .request_json = changes.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
      .etag_before = {}};
  return api::AuditOf(call, "upgrades/" + id);
}

}  // namespace rocegw::upgrades
