// SPDX-License-Identifier: Apache-2.0
// Devices of the gateway, and what the programs of each pool see of their addresses. Control
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gateway/session/options.h"
#include "gateway/tenant/registry.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::session {

class DeviceTable {
 public:
  // `pools` outlives the table.
  explicit DeviceTable(tenant::Registry& pools) : pools_(pools) {}

  size_t size() const { return devices_.size(); }
  const Device& operator[](size_t index) const { return devices_[index]; }
  auto begin() const { return devices_.begin(); }
  auto end() const { return devices_.end(); }

  void Add(Device device);
  void Update(size_t index, Device device);

  // Returns the devices with the addresses that programs of the pool see; other addresses are zero,
  // indices stay. Valid until ForgetViews.
  const std::vector<Device>& SeenBy(const tenant::Pool& pool) {
    return addresses_are_owned_ ? ViewOf(pool).devices : devices_;
  }
  // Returns the addresses as workers use them. A table is never freed, because queue pairs keep
  // their first one; changes are rare.
  const verbs::GidTable* GidTableOf(const tenant::Pool& pool, size_t device) {
    return addresses_are_owned_ ? ViewOf(pool).gid_tables[device] : gid_tables_[device];
  }
  // Returns true if the address belongs to the pool, or to no pool and the pool has none of its
  // own.
  bool MaySee(const tenant::Pool& pool, const wire::Gid& address) const;
  // Returns the id of the pool that owns the address; 0: none.
  uint64_t OwnerOf(const wire::Gid& address) const;
  bool addresses_are_owned() const { return addresses_are_owned_; }
  // Discards the views after pools or devices changed.
  void ForgetViews();

 private:
  struct View {
    std::vector<Device> devices;
    std::vector<const verbs::GidTable*> gid_tables;
  };

  const verbs::GidTable* Publish(const Device& device);
  const View& ViewOf(const tenant::Pool& pool);

  tenant::Registry& pools_;
  std::vector<Device> devices_;
  std::vector<const verbs::GidTable*> gid_tables_;  // by device
  std::vector<std::unique_ptr<const verbs::GidTable>> all_gid_tables_;
  bool addresses_are_owned_ = false;
  std::unordered_map<uint64_t, View> views_;  // by pool
};

}  // namespace rocegw::session
