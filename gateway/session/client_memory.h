// SPDX-License-Identifier: Apache-2.0
// Access of a session to its client's memory: the access mode, the address space for the workers,
// devices' memory in it, and the copier that executes the workers' operations on memory which may
// block. Owner: the session, control thread. Workers use space and copier until they have unlinked
// the session; a blocked copier keeps what it needs beyond that.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/inherited_fds.h"
#include "gateway/device_memory/device_space.h"
#include "gateway/device_memory/open_devices.h"
#include "gateway/memory/copier.h"
#include "gateway/memory/descriptor.h"
#include "gateway/memory/foreign_memory.h"
#include "gateway/memory/region.h"
#include "gateway/session/attach/peer.h"
#include "gateway/tenant/charge.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::session {

struct Services;

// Costs of a GPU for a session.
using DeviceCharges = std::array<tenant::Charge, 2>;

// State of an ended session that a blocked copier or a GPU keeps: charges return to the pool when
// the copier's thread has ended, and those of a GPU when its engine has. An engine whose copies
// never end keeps its charges for good. Control thread.
struct CopierRemains {
  bool ended = true;  // the copier's thread, or there was none
  std::vector<tenant::Charge> charges;
  std::unordered_map<uint64_t, DeviceCharges> devices;  // by engine, until its end
  uint64_t next_device = 0;

  bool Waits() const { return !ended || !devices.empty(); }
};

class ClientMemory {
 public:
  // All arguments outlive the object.
  ClientMemory(Services& services, const tenant::Pool& pool, const Peer& peer);

  // Chooses the access mode. `memory` was checked, or is invalid.
  void SetUp(UniqueFd memory);
  // Replaces the descriptor, if the access mode uses one.
  Status Replace(UniqueFd memory);
  bool reachable() const { return reachable_; }
  rocegw_memory_way way() const { return way_; }

  // The program may register devices' memory: a copier executes its operations from the start.
  void ExpectDevices() { expects_devices_ = true; }
  bool expects_devices() const { return expects_devices_; }
  // Devices that the session uses; the call queue opens buffers there.
  const std::shared_ptr<device_memory::OpenDevices>& devices();
  // Keeps the charges for an engine until the returned object releases them.
  std::shared_ptr<device_memory::EngineCosts> KeepDevice(DeviceCharges charges);
  // Executes operations on the buffer's addresses by its device. Needs a copier.
  void AddDevice(std::shared_ptr<device_memory::DeviceBuffer> buffer) {
    space_->Add(std::move(buffer));
  }
  void RemoveDevice(const device_memory::DeviceBuffer& buffer) { space_->Remove(&buffer); }

  // Keeps a remapped region mapped as long as a copier may use it.
  void AddRegion(uint32_t handle, std::shared_ptr<memory::Region> region) {
    parts_->regions.emplace(handle, std::move(region));
  }
  void RemoveRegion(uint32_t handle) { parts_->regions.erase(handle); }

  // Starts the copier of a session that needs one: untrusted ones, and those with devices' memory.
  // `pool`: is charged for the copier's heap.
  Status StartCopierIfNeeded(tenant::Pool& pool);
  Status StartCopier(tenant::Pool& pool);
  // nullptr: none.
  memory::Copier* copier() const { return copier_.get(); }
  // For the workers; nullptr before SetUp.
  memory::ForeignMemory* memory() const { return memory_.get(); }

  // Closes client memory to the workers.
  void Revoke() {
    if (memory_) memory_->Revoke();
  }
  // Keeps a charge until the copier's thread has ended; without a copier the charge stays with the
  // caller.
  void ReleaseWithCopier(tenant::Charge& charge) {
    if (copier_ != nullptr) remains_->charges.push_back(std::move(charge));
  }
  // Releases everything, after all workers have unlinked the session.
  void Release();
  // Valid after Release, too.
  const std::shared_ptr<CopierRemains>& remains() const { return remains_; }

  // Hand-over to a gateway that takes over (hand_over/session_state.cc). The descriptor of client
  // memory; -1: none.
  int descriptor() const { return by_descriptor_ == nullptr ? -1 : by_descriptor_->fd(); }
  // Writes the access mode, or chooses it again with the descriptor from `take`.
  void HandOver(hand_over::StateStream& state, const std::function<UniqueFd()>& take);

 private:
  // Objects that a blocked copier keeps when the session is destroyed.
  struct Parts {
    memory::AtomicLocks locks;
    std::unordered_map<uint32_t, std::shared_ptr<memory::Region>> regions;  // by handle
  };

  memory::AtomicLocks& locks();
  // Returns true if the session may copy to and from the program's memory, where the kernel permits
  // it.
  bool MayCross() const;
  void Use(bool cross, UniqueFd memory);

  Services& services_;
  const Peer& peer_;
  const bool trusted_;
  bool reachable_ = false;
  bool expects_devices_ = false;
  rocegw_memory_way way_ = ROCEGW_MEMORY_CROSS;
  std::shared_ptr<Parts> parts_ = std::make_shared<Parts>();
  std::shared_ptr<memory::ForeignMemory> memory_;
  std::shared_ptr<device_memory::DeviceSpace> space_;  // memory_, and devices' memory
  std::shared_ptr<device_memory::OpenDevices> devices_;
  memory::DescriptorMemory* by_descriptor_ = nullptr;  // memory_, if it is of this kind
  std::unique_ptr<memory::Copier> copier_;
  const std::shared_ptr<CopierRemains> remains_ = std::make_shared<CopierRemains>();
};

}  // namespace rocegw::session
