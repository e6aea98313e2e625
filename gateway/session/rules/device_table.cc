// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/rules/device_table.h"

#include <algorithm>
#include <utility>

namespace rocegw::session {
namespace {

bool Owns(const tenant::Pool& pool, const wire::Gid& address) {
  const auto& own = pool.settings().addresses;
  return std::ranges::find(own, address) != own.end();
}

}  // namespace

void DeviceTable::Add(Device device) {
  devices_.push_back(std::move(device));
  gid_tables_.push_back(Publish(devices_.back()));
}

void DeviceTable::Update(size_t index, Device device) {
  const bool same_gids = devices_[index].gids == device.gids;
  devices_[index] = std::move(device);
  if (!same_gids) gid_tables_[index] = Publish(devices_[index]);
  ForgetViews();
}

const verbs::GidTable* DeviceTable::Publish(const Device& device) {
  auto table = std::make_unique<verbs::GidTable>();
  std::copy_n(device.gids.begin(), std::min(device.gids.size(), verbs::GidTable::kSize),
              table->entries.begin());
  // Reuses an equal table, so that a configuration that changes back and forth costs nothing.
  for (const auto& known : all_gid_tables_) {
    if (*known == *table) return known.get();
  }
  all_gid_tables_.push_back(std::move(table));
  return all_gid_tables_.back().get();
}

uint64_t DeviceTable::OwnerOf(const wire::Gid& address) const {
  uint64_t owner = 0;
  if (!addresses_are_owned_) return owner;
  // Pools in force come before those that leave.
  pools_.ForEachPool([&](const tenant::Pool& pool) {
    if (owner == 0 && Owns(pool, address)) owner = pool.id();
  });
  return owner;
}

bool DeviceTable::MaySee(const tenant::Pool& pool, const wire::Gid& address) const {
  if (!addresses_are_owned_) return true;
  if (!pool.settings().addresses.empty()) return Owns(pool, address);
  return OwnerOf(address) == 0;
}

void DeviceTable::ForgetViews() {
  views_.clear();
  addresses_are_owned_ = false;
  pools_.ForEachPool([&](const tenant::Pool& pool) {
    addresses_are_owned_ |= !pool.settings().addresses.empty();
  });
}

const DeviceTable::View& DeviceTable::ViewOf(const tenant::Pool& pool) {
  const auto [known, is_new] = views_.try_emplace(pool.id());
  View& view = known->second;
  if (!is_new) return view;
  view.devices = devices_;
  for (Device& device : view.devices) {
    for (wire::Gid& gid : device.gids) {
      if (!gid.IsZero() && !MaySee(pool, gid)) gid = {};
    }
    view.gid_tables.push_back(Publish(device));
  }
  return view;
}

}  // namespace rocegw::session
