// SPDX-License-Identifier: Apache-2.0
// Stand-in of kubelet for device plugins: takes registrations, watches devices, allocates devices
// to pods and lists the allocations (PodResources API). Speaks the real protocols at real sockets.
// As kubelet, it empties its folder at each start and forgets registrations at each stop;
// allocations stay. One thread calls the methods; the servers' threads are internal.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin.pb.h"

namespace rocegw::testing {

struct SeenDevice {
  bool healthy = false;
  int numa_node = -1;
};
using SeenDevices = std::map<std::string, SeenDevice>;  // by id

// Result of the admission of a container.
struct Admission {
  std::string problem;  // empty: admitted
  std::string device;
  v1beta1::ContainerAllocateResponse container;
};

class FakeKubelet {
 public:
  // Makes ROOT/dp for plugins (a short name, since socket addresses are short) and
  // ROOT/pod-resources.
  explicit FakeKubelet(const std::string& root);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  void Start();
  // `socket_stays`: leaves the socket file, as a killed kubelet does.
  void Stop(bool socket_stays = false);
  // Stop and start the PodResources API alone; plugins stay registered.
  void StopPodResources();
  void StartPodResources();

  std::string plugin_dir() const { return plugin_dir_; }
  std::string pod_resources_socket() const { return pod_resources_; }

  // Returns the devices of a resource; none if it is not registered.
  SeenDevices Devices(const std::string& resource) const;
  // Waits until `wanted` accepts the devices. Returns false after the time-out.
  bool Wait(const std::string& resource, const std::function<bool(const SeenDevices&)>& wanted,
            std::chrono::seconds within = std::chrono::seconds(20)) const;
  // Waits until exactly `count` devices are listed and all of them are healthy.
  bool WaitHealthy(const std::string& resource, size_t count) const;
  // Returns the number of registrations of a resource since construction.
  int registrations(const std::string& resource) const;
  bool WaitRegistrations(const std::string& resource, int least) const;

  // Admits a pod with one container that asks for `count` devices: allocates the devices, records
  // them for the pod, and prepares the start. `device`: the device to allocate; empty: the first
  // that is healthy and free.
  Admission Admit(const std::string& name_space, const std::string& pod,
                  const std::string& resource, const std::string& device = "", int count = 1);
  // Starts the pod's container again with its devices.
  std::string StartAgain(const std::string& resource, const std::string& device);
  void Release(const std::string& name_space, const std::string& pod);
  // Marks the pod as finished: it stays listed, and its device is free for another pod.
  void Finish(const std::string& name_space, const std::string& pod);
  // Assigns the device to the pod's plain init container: PodResources does not list it, but
  // kubelet's checkpoint has it under the pod's UID.
  void MakeInit(const std::string& resource, const std::string& device, const std::string& uid);

  // Limits PodResources calls as kubelet does: 100 per second, burst 10. `used_up`: number of calls
  // by which other programs have overdrawn the token bucket.
  void LimitRate(double used_up);
  // Returns the number of calls that the limit refused.
  int turned_away() const;

 private:
  struct State;
  class Registration;
  class Lister;
  struct Servers;

  const std::string plugin_dir_;
  const std::string pod_resources_;
  const std::shared_ptr<State> state_;
  std::unique_ptr<Servers> servers_;
};

}  // namespace rocegw::testing
