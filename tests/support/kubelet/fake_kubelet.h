// SPDX-License-Identifier: Apache-2.0
// kubelet as device plugins see it: it takes their registrations, watches their devices, gives
// devices to pods, and tells who holds what (podresources). It speaks the real protocols at real
// sockets. When it starts it empties its folder, and what it hears is gone with a stop, as
// kubelet's; who holds what stays. Used by one thread; its own threads are inside.
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

// What a container is started with.
struct Admission {
  std::string problem;  // empty: it was admitted
  std::string device;
  v1beta1::ContainerAllocateResponse container;
};

class FakeKubelet {
 public:
  // Makes ROOT/dp, for plugins, as addresses of sockets are short, and ROOT/pod-resources.
  explicit FakeKubelet(const std::string& root);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  void Start();
  // socket_stays: as of one that was killed.
  void Stop(bool socket_stays = false);
  // Who holds what is not told any more, or again; plugins are heard as before.
  void StopPodResources();
  void StartPodResources();

  std::string plugin_dir() const { return plugin_dir_; }
  std::string pod_resources_socket() const { return pod_resources_; }

  // Of a resource that is not registered: nothing.
  SeenDevices Devices(const std::string& resource) const;
  // Until the devices are as wanted; false: they are not in time.
  bool Wait(const std::string& resource, const std::function<bool(const SeenDevices&)>& wanted,
            std::chrono::seconds within = std::chrono::seconds(20)) const;
  // So many of them healthy, and no others.
  bool WaitHealthy(const std::string& resource, size_t count) const;
  // Since it was made, by resource.
  int registrations(const std::string& resource) const;
  bool WaitRegistrations(const std::string& resource, int least) const;

  // A pod with one container that asks for `count` of the resource: allocated, noted as the pod's,
  // and about to start. device: which one; empty: the first that is healthy and nobody's.
  Admission Admit(const std::string& name_space, const std::string& pod,
                  const std::string& resource, const std::string& device = "", int count = 1);
  // The pod's container starts again with what it has.
  std::string StartAgain(const std::string& resource, const std::string& device);
  void Release(const std::string& name_space, const std::string& pod);
  // The pod has finished and is still listed; its device is free for another pod.
  void Finish(const std::string& name_space, const std::string& pod);
  // The device belongs to the pod's plain init container: it is not listed, but stands in kubelet's
  // checkpoint under the pod's uid.
  void MakeInit(const std::string& resource, const std::string& device, const std::string& uid);

  // Questions about who holds what, as kubelet limits them: 100 a second, 10 at once. used_up: the
  // questions beyond that with which other programs have used up the time to come.
  void LimitRate(double used_up);
  // Questions that the limit has turned away.
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
