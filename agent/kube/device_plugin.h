// SPDX-License-Identifier: Apache-2.0
// The node's device plugins, one for each resource: their sockets in kubelet's folder, and their
// registration, again whenever kubelet has started anew (its socket is another then, and it has
// removed ours). Looks when its owner says so; the folder is small. Lives on the agent's loop,
// which outlives it, as do the slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "agent/kube/plugin_server.h"
#include "agent/kube/slot_allocator.h"
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

// What other threads may read.
struct DevicePluginCounters {
  std::atomic<uint64_t> registered{0};  // resources that kubelet knows now
  std::atomic<uint64_t> registrations{0};
  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> healthy_slots{0};
  std::atomic<uint64_t> unhealthy_slots{0};
};

class DevicePlugin {
 public:
  // The longest folder whose sockets have room in an address of unix(7), bytes.
  static constexpr size_t kLongestFolder = 33;

  // folder: kubelet's, with its kubelet.sock.
  DevicePlugin(session::ControlLoop& loop, SlotAllocator& slots, std::string folder,
               ContainerSettings containers);
  ~DevicePlugin();
  DevicePlugin(const DevicePlugin&) = delete;
  DevicePlugin& operator=(const DevicePlugin&) = delete;

  // Resources or slots are others than before.
  void Update();
  // Looks after kubelet's socket and its own; now and then.
  void Look();

  const DevicePluginCounters& counters() const { return counters_; }

 private:
  struct Resource {
    std::unique_ptr<PluginServer> server;
    bool running = false;
    bool registering = false;
    bool registered = false;
  };

  std::string SocketOf(const std::string& resource) const;
  void Serve(const std::string& name, Resource& resource);
  void Register(const std::string& name);
  void OnRegistered(const std::string& name, uint64_t life, const std::string& problem);
  void Say(const std::string& problem);
  void Count();

  session::ControlLoop& loop_;
  SlotAllocator& slots_;
  const std::string folder_;
  const ContainerSettings containers_;
  DevicePluginCounters counters_;
  std::map<std::string, Resource> resources_;
  std::string kubelet_;        // tells its socket from a later one; empty: it is not there
  uint64_t kubelet_life_ = 0;  // counts its starts that were seen
  std::string last_problem_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
