// SPDX-License-Identifier: Apache-2.0
// One resource's device plugin: a gRPC server at a unix socket that kubelet connects to. Calls of
// kubelet are handed to the loop; a call whose client has gone is ended without it, so that the
// server can be stopped on the loop. Made, used and destroyed there.
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
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

class PluginServer {
 public:
  PluginServer(session::ControlLoop& loop, SlotAllocator& slots, std::string resource,
               ContainerSettings containers);
  ~PluginServer();
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  // Again: at another socket, or where the old one was removed. A file that is in the way is
  // replaced.
  Status Start(const std::string& socket);
  // The slots are other than before: kubelet is told.
  void Update();
  // Since the start.
  uint64_t allocations() const;

 private:
  class Service;
  void Stop();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rocegw::agent
