// SPDX-License-Identifier: Apache-2.0
// Device plugin of one resource: a gRPC server at a unix socket for kubelet. Calls are passed to
// the loop; a cancelled call ends without it, so that the server can be stopped on the loop.
// Created, used and destroyed there.
#pragma once

#include <grpcpp/server.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/kube/container_edits.h"
#include "agent/kube/slot_allocator.h"
#include "gateway/base/status.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

class PluginServer {
 public:
  PluginServer(ControlLoop& loop, SlotAllocator& slots, std::string resource,
               ContainerSettings containers);
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // Starts the server, also again at another socket or after the old one was removed. Replaces an
  // existing file.
  Status Start(const std::string& socket);
  // Sends the changed slots to kubelet.
  void Update();
  // Number since the start.
  uint64_t allocations() const;

 private:
  class Service;
  void Stop();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rocegw::agent
