// SPDX-License-Identifier: Apache-2.0
// Device plugins of the node, one per resource: their sockets in kubelet's directory, and their
// registration, repeated whenever kubelet restarts (it then has a new socket and has removed ours).
// The owner triggers the checks; the directory is small. Lives on the agent's loop, which outlives
// it, as do the slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "agent/kube/plugin_server.h"
#include "agent/kube/slot_allocator.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

// Counters for other threads.
struct DevicePluginCounters {
  std::atomic<uint64_t> registered{0};  // resources registered with kubelet
  std::atomic<uint64_t> registrations{0};
  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> healthy_slots{0};
  std::atomic<uint64_t> unhealthy_slots{0};
};

class DevicePlugin {
 public:
  // Longest directory name, in bytes, for which socket paths fit an address of unix(7).
  static constexpr size_t kLongestFolder = 33;

  // `folder`: kubelet's directory with its kubelet.sock.
  DevicePlugin(ControlLoop& loop, SlotAllocator& slots, std::string folder,
               ContainerSettings containers);
  ~DevicePlugin();
  DevicePlugin(const DevicePlugin&) = delete;
  DevicePlugin& operator=(const DevicePlugin&) = delete;

  // Updates the plugins after resources or slots changed.
  void Update();
  // Checks kubelet's socket and its own sockets; call periodically.
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

  ControlLoop& loop_;
  SlotAllocator& slots_;
  const std::string folder_;
  const ContainerSettings containers_;
  DevicePluginCounters counters_;
  std::map<std::string, Resource> resources_;
  std::string kubelet_;        // identity of kubelet's socket; empty: no socket
  uint64_t kubelet_life_ = 0;  // number of kubelet starts seen
  std::string last_problem_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
