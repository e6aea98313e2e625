// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/plugin_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <set>
#include <utility>

#include "agent/kube/cdi_spec.h"
#include "agent/kube/loop_call.h"
#include "deviceplugin.grpc.pb.h"

namespace rocegw::agent {
namespace {

grpc::Status StatusOf(const Status& status) {
  const auto code =
      status.error() == ENOENT ? grpc::StatusCode::NOT_FOUND : grpc::StatusCode::UNAVAILABLE;
  return {code, status.text()};
}

// Passes a slot by kubelet itself, or by the container runtime's description of it.
StatusOr<v1beta1::ContainerAllocateResponse> Hand(const Slot& slot,
                                                  const ContainerSettings& containers) {
  v1beta1::ContainerAllocateResponse container;
  const ContainerEdits edits = EditsFor(slot, containers);
  if (!containers.cdi_dir.empty()) {
    Status written = WriteCdiSpec(containers.cdi_dir, CdiKind::kSlot, slot.id, edits);
    if (!written.ok()) return written;
    container.add_cdi_devices()->set_name(CdiDeviceName(CdiKind::kSlot, slot.id));
    return container;
  }
  container.mutable_envs()->insert(edits.variables.begin(), edits.variables.end());
  for (const ContainerMount& edit : edits.mounts) {
    v1beta1::Mount& mount = *container.add_mounts();
    mount.set_host_path(edit.host_path);
    mount.set_container_path(edit.container_path);
    mount.set_read_only(true);
  }
  return container;
}

}  // namespace

// Stream of the devices to kubelet. gRPC is called with the lock held: its callbacks come on other
// threads, and a watcher exists until the last of them.
class DeviceWatcher final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
 public:
  struct Shared {
    std::mutex mutex;  // guards this object and all watchers
    std::set<DeviceWatcher*> watchers;
    v1beta1::ListAndWatchResponse newest;

    void Set(v1beta1::ListAndWatchResponse list) {
      const std::lock_guard lock(mutex);
      if (list.SerializeAsString() == newest.SerializeAsString()) return;
      newest = std::move(list);
      for (DeviceWatcher* const watcher : watchers) {
        watcher->stale_ = true;
        watcher->GoOn();
      }
    }
  };

  explicit DeviceWatcher(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
    const std::lock_guard lock(shared_->mutex);
    shared_->watchers.insert(this);
    GoOn();
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(shared_->mutex);
    writing_ = false;
    ended_ |= !ok;
    GoOn();
  }
  void OnCancel() override {
    const std::lock_guard lock(shared_->mutex);
    ended_ = true;
    GoOn();
  }
  void OnDone() override {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->watchers.erase(this);
    }
    delete this;
  }

 private:
  void GoOn() {
    if (writing_ || finished_) return;
    if (ended_) {
      finished_ = true;
      return Finish(grpc::Status::OK);
    }
    if (!stale_) return;
    stale_ = false;
    writing_ = true;
    list_ = shared_->newest;
    StartWrite(&list_);
  }

  const std::shared_ptr<Shared> shared_;
  v1beta1::ListAndWatchResponse list_;  // list being sent
  bool stale_ = true;                   // the newest list was not sent
  bool writing_ = false;
  bool ended_ = false;     // the client has ended the stream
  bool finished_ = false;  // gRPC was told so
};

class PluginServer::Service final : public v1beta1::DevicePlugin::CallbackService {
 public:
  Service(ControlLoop& loop, SlotAllocator& slots, const std::string& resource,
          ContainerSettings containers)
      : loop_(loop), slots_(slots), resource_(resource), containers_(std::move(containers)) {}
  // Destroyed on the loop: tasks that were passed to it and have not begun are dropped.
  ~Service() override { *alive_ = false; }

  // Called on the loop.
  void Update() {
    v1beta1::ListAndWatchResponse list;
    for (const OfferedSlot& slot : slots_.Slots(resource_)) {
      v1beta1::Device& device = *list.add_devices();
      device.set_id(slot.id);
      device.set_health(slot.healthy ? "Healthy" : "Unhealthy");
      if (slot.numa_node >= 0) device.mutable_topology()->add_nodes()->set_id(slot.numa_node);
    }
    shared_->Set(std::move(list));
  }
  uint64_t allocations() const { return allocations_; }

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const v1beta1::Empty*,
                                                   v1beta1::DevicePluginOptions* options) override {
    options->set_pre_start_required(true);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(
      grpc::CallbackServerContext*, const v1beta1::Empty*) override {
    return new DeviceWatcher(shared_);
  }
  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext*,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) override {
    return OnLoop<v1beta1::AllocateResponse>(response, [this, request = *request](auto answer) {
      std::vector<std::string> ids;
      for (const auto& container : request.container_requests()) {
        if (container.devices_ids_size() != 1) {
          return answer->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                                 "a container has one slot: ask for 1 of " + resource_},
                                {});
        }
        ids.push_back(container.devices_ids(0));
      }
      slots_.Allocate(resource_, ids, [this, answer](const StatusOr<std::vector<Slot>>& slots) {
        v1beta1::AllocateResponse allocated;
        if (!slots.ok()) return answer->Finish(StatusOf(slots.status()), allocated);
        for (const Slot& slot : slots.value()) {
          auto container = Hand(slot, containers_);
          if (!container.ok()) return answer->Finish(StatusOf(container.status()), {});
          *allocated.add_container_responses() = std::move(*container);
        }
        ++allocations_;
        answer->Finish(grpc::Status::OK, allocated);
      });
    });
  }
  grpc::ServerUnaryReactor* PreStartContainer(
      grpc::CallbackServerContext*, const v1beta1::PreStartContainerRequest* request,
      v1beta1::PreStartContainerResponse* response) override {
    std::vector<std::string> ids(request->devices_ids().begin(), request->devices_ids().end());
    return OnLoop<v1beta1::PreStartContainerResponse>(response, [this, ids](auto answer) {
      slots_.Prepare(resource_, ids, [this, answer](const StatusOr<std::vector<Slot>>& slots) {
        if (!slots.ok()) return answer->Finish(StatusOf(slots.status()), {});
        // The runtime's directory is lost at a restart of the host; kubelet's state is not.
        for (const Slot& slot : slots.value()) {
          const auto container = Hand(slot, containers_);
          if (!container.ok()) return answer->Finish(StatusOf(container.status()), {});
        }
        answer->Finish(grpc::Status::OK, {});
      });
    });
  }

 private:
  template <typename Response, typename Task>
  grpc::ServerUnaryReactor* OnLoop(Response* response, Task task) {
    return CallOnLoop(loop_, alive_, response, std::move(task));
  }

  ControlLoop& loop_;
  SlotAllocator& slots_;
  const std::string resource_;
  const ContainerSettings containers_;
  const std::shared_ptr<DeviceWatcher::Shared> shared_ = std::make_shared<DeviceWatcher::Shared>();
  uint64_t allocations_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

PluginServer::PluginServer(ControlLoop& loop, SlotAllocator& slots, std::string resource,
                           ContainerSettings containers)
    : service_(std::make_unique<Service>(loop, slots, resource, std::move(containers))) {
  service_->Update();
}

PluginServer::~PluginServer() { Stop(); }

Status PluginServer::Start(const std::string& socket) {
  Stop();
  ::unlink(socket.c_str());
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return {EIO, socket + ": gRPC could not start there"};
  return OkStatus();
}

void PluginServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void PluginServer::Update() { service_->Update(); }

uint64_t PluginServer::allocations() const { return service_->allocations(); }

}  // namespace rocegw::agent
