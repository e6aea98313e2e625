// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/fleet_view.h"

#include <algorithm>

#include "controlplane/model/joined.h"

namespace rocegw::controllers {
namespace {

template <typename Object>
void ApplyIntent(const store::Change& change, const std::string& name, Objects<Object>& objects) {
  Object intent;
  const store::Revision revision = change.entry.mod_revision;
  if (change.deleted || !model::ReadIntent(change.entry.value, name, revision, intent)) {
    objects.erase(name);
    return;
  }
  Known<Object>& known = objects[name];
  if constexpr (model::kHasStatus<Object>) {
    if (known.object.has_status()) intent.mutable_status()->Swap(known.object.mutable_status());
  }
  known.object.Swap(&intent);
  known.intent_revision = revision;
}

template <typename Object>
void ApplyStatus(const store::Change& change, const std::string& name, Objects<Object>& objects) {
  const auto known = objects.find(name);
  if (known == objects.end()) return;
  known->second.status_revision = change.entry.mod_revision;
  // A deleted status has no value.
  model::ReadStatus(change.entry.value, known->second.object);
}

template <typename Object>
void ApplyTo(const store::Change& change, model::Part part, const std::string& name,
             Objects<Object>& objects) {
  if (part == model::Part::kIntent) {
    ApplyIntent(change, name, objects);
  } else {
    ApplyStatus(change, name, objects);
  }
}

types::v1::GatewayState StatusOf(const FleetView& view, const std::string& gateway) {
  const auto known = view.gateways.find(gateway);
  return known == view.gateways.end() ? types::v1::GatewayState() : known->second.object.status();
}

void Index(const FleetView& view, const std::string& name,
           std::map<std::string, std::set<std::string>>& bindings_of) {
  const auto known = view.role_bindings.find(name);
  if (known != view.role_bindings.end())
    bindings_of[known->second.object.spec().subject()].insert(name);
}

void Unindex(const FleetView& view, const std::string& name,
             std::map<std::string, std::set<std::string>>& bindings_of) {
  const auto known = view.role_bindings.find(name);
  if (known == view.role_bindings.end()) return;
  const auto subject = bindings_of.find(known->second.object.spec().subject());
  subject->second.erase(name);
  if (subject->second.empty()) bindings_of.erase(subject);
}

void IndexAddresses(const std::string& name, const types::v1::GatewayState& before,
                    const types::v1::GatewayState& after,
                    std::map<std::string, std::set<std::string>>& gateways_at) {
  for (const std::string& address : before.addresses()) {
    const auto at = gateways_at.find(address);
    if (at == gateways_at.end()) continue;  // named twice
    at->second.erase(name);
    if (at->second.empty()) gateways_at.erase(at);
  }
  for (const std::string& address : after.addresses()) gateways_at[address].insert(name);
}

void IndexShares(const std::string& name, FleetView& view) {
  const auto known = view.tenants.find(name);
  const bool shares =
      known != view.tenants.end() && (known->second.object.spec().has_donated_bytes() ||
                                      known->second.object.status().donor_shares_size() != 0);
  if (shares) {
    view.tenants_with_shares.insert(name);
  } else {
    view.tenants_with_shares.erase(name);
  }
}

std::optional<Changed> ApplyOne(const store::Change& change, FleetView& view) {
  std::optional<model::StoredName> stored = model::ParseKey(change.entry.key);
  if (!stored.has_value()) return std::nullopt;
  Changed changed{.name = std::move(stored->name), .intent = stored->part == model::Part::kIntent};
  const std::string name = changed.name.Text();
  switch (changed.name.collection) {
    case model::Collection::kTenants:
      ApplyTo(change, stored->part, name, view.tenants);
      IndexShares(name, view);
      break;
    case model::Collection::kPools:
      ApplyTo(change, stored->part, name, view.pools);
      break;
    case model::Collection::kCcPolicies:
      ApplyTo(change, stored->part, name, view.cc_policies);
      break;
    case model::Collection::kGateways: {
      const types::v1::GatewayState before = StatusOf(view, name);
      ApplyTo(change, stored->part, name, view.gateways);
      const types::v1::GatewayState after = StatusOf(view, name);
      changed.addresses = !std::ranges::equal(before.addresses(), after.addresses());
      if (changed.addresses) IndexAddresses(name, before, after, view.gateways_at);
      break;
    }
    case model::Collection::kRoleBindings:
      Unindex(view, name, view.bindings_of);
      ApplyTo(change, stored->part, name, view.role_bindings);
      Index(view, name, view.bindings_of);
      break;
    case model::Collection::kOperations:
      ApplyTo(change, stored->part, name, view.operations);
      break;
    case model::Collection::kDonors:
      ApplyTo(change, stored->part, name, view.donors);
      break;
  }
  return changed;
}

}  // namespace

std::vector<Changed> Apply(const store::Changes& changes, FleetView& view) {
  std::vector<Changed> all;
  for (const store::Change& change : changes.changes) {
    std::optional<Changed> changed = ApplyOne(change, view);
    if (!changed.has_value()) continue;
    const auto same = std::ranges::find(all, changed->name, &Changed::name);
    if (same == all.end()) {
      all.push_back(std::move(*changed));
    } else {
      same->intent |= changed->intent;
      same->addresses |= changed->addresses;
    }
  }
  view.revision = changes.revision;
  return all;
}

void Load(const std::vector<store::Entry>& entries, store::Revision revision, FleetView& view) {
  view = FleetView();
  for (const store::Entry& entry : entries) ApplyOne({.deleted = false, .entry = entry}, view);
  view.revision = revision;
}

}  // namespace rocegw::controllers
