// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kubelet/fake_kubelet.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "deviceplugin.grpc.pb.h"
#include "podresources.grpc.pb.h"

namespace rocegw::testing {
namespace {

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<grpc::Server> Serve(const std::string& socket, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  return builder.BuildAndStart();
}

void EndNow(std::unique_ptr<grpc::Server>& server) {
  if (server == nullptr) return;
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
  server.reset();
}

}  // namespace

// A plugin that has registered, from then until its stream ends or another registers.
struct Endpoint {
  std::string socket;
  grpc::ClientContext watching;
  std::thread thread;
};

struct FakeKubelet::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::map<std::string, SeenDevices> devices;  // by resource
  std::map<std::string, std::shared_ptr<Endpoint>> endpoints;
  std::vector<std::shared_ptr<Endpoint>> former;
  std::map<std::string, int> registrations;
  // By resource and device: namespace and name of the pod.
  using Device = std::pair<std::string, std::string>;
  std::map<Device, std::pair<std::string, std::string>> holders;
  std::vector<std::pair<Device, std::pair<std::string, std::string>>> finished;
  std::set<Device> of_init;  // not listed
  // Token bucket of questions; not there: no limit.
  std::optional<double> tokens;
  std::chrono::steady_clock::time_point filled_at;
  int turned_away = 0;

  bool TakeToken() {
    if (!tokens) return true;
    constexpr double kRate = 100;
    constexpr double kBurst = 10;
    const auto now = std::chrono::steady_clock::now();
    tokens =
        std::min(kBurst, *tokens + kRate * std::chrono::duration<double>(now - filled_at).count());
    filled_at = now;
    if (*tokens < 1) return ++turned_away, false;
    *tokens -= 1;
    return true;
  }

  void Watch(const std::string& resource, const std::shared_ptr<Endpoint>& endpoint) {
    const auto stub = v1beta1::DevicePlugin::NewStub(ChannelTo(endpoint->socket));
    const auto stream = stub->ListAndWatch(&endpoint->watching, v1beta1::Empty());
    v1beta1::ListAndWatchResponse list;
    while (stream->Read(&list)) {
      const std::lock_guard lock(mutex);
      SeenDevices seen;
      for (const v1beta1::Device& device : list.devices()) {
        const auto& nodes = device.topology().nodes();
        seen[device.id()] = {device.health() == "Healthy",
                             nodes.empty() ? -1 : static_cast<int>(nodes[0].id())};
      }
      if (IsCurrent(resource, endpoint)) devices[resource] = seen;
      changed.notify_all();
    }
    (void)stream->Finish();
    const std::lock_guard lock(mutex);
    // Of a plugin that has gone nothing is healthy.
    if (IsCurrent(resource, endpoint)) {
      for (auto& [id, device] : devices[resource]) device.healthy = false;
    }
    changed.notify_all();
  }
  bool IsCurrent(const std::string& resource, const std::shared_ptr<Endpoint>& endpoint) const {
    const auto known = endpoints.find(resource);
    return known != endpoints.end() && known->second == endpoint;
  }
  void Forget(const std::string& resource) {
    auto node = endpoints.extract(resource);
    if (node.empty()) return;
    node.mapped()->watching.TryCancel();
    former.push_back(node.mapped());
  }
};

class FakeKubelet::Registration final : public v1beta1::Registration::Service {
 public:
  Registration(std::shared_ptr<State> state, std::string folder)
      : state_(std::move(state)), folder_(std::move(folder)) {}
  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    if (request->version() != "v1beta1")
      return {grpc::StatusCode::INVALID_ARGUMENT, "unsupported version"};
    if (!request->options().pre_start_required())
      return {grpc::StatusCode::INVALID_ARGUMENT, "slots must be cleaned before each start"};
    const std::lock_guard lock(state_->mutex);
    state_->Forget(request->resource_name());
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->socket = folder_ + "/" + request->endpoint();
    state_->endpoints[request->resource_name()] = endpoint;
    ++state_->registrations[request->resource_name()];
    state_->changed.notify_all();
    endpoint->thread = std::thread([state = state_, resource = request->resource_name(), endpoint] {
      state->Watch(resource, endpoint);
    });
    return grpc::Status::OK;
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string folder_;
};

class FakeKubelet::Lister final : public v1::PodResourcesLister::Service {
 public:
  explicit Lister(std::shared_ptr<State> state) : state_(std::move(state)) {}
  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override {
    const std::lock_guard lock(state_->mutex);
    if (!state_->TakeToken())
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"};
    for (const auto& [key, holder] : state_->holders)
      if (!state_->of_init.contains(key)) Add(*response, key, holder);
    for (const auto& [key, holder] : state_->finished) Add(*response, key, holder);
    return grpc::Status::OK;
  }

 private:
  static void Add(v1::ListPodResourcesResponse& response, const State::Device& device,
                  const std::pair<std::string, std::string>& holder) {
    v1::PodResources& pod = *response.add_pod_resources();
    pod.set_namespace_(holder.first);
    pod.set_name(holder.second);
    v1::ContainerDevices& devices = *pod.add_containers()->add_devices();
    devices.set_resource_name(device.first);
    devices.add_device_ids(device.second);
  }

  const std::shared_ptr<State> state_;
};

struct FakeKubelet::Servers {
  Servers(const std::shared_ptr<State>& state, const std::string& folder)
      : registration(state, folder), lister(state) {}
  Registration registration;
  Lister lister;
  std::unique_ptr<grpc::Server> plugins;
  std::unique_ptr<grpc::Server> pods;
};

FakeKubelet::FakeKubelet(const std::string& root)
    : plugin_dir_(root + "/dp"),
      pod_resources_(root + "/pod-resources/kubelet.sock"),
      state_(std::make_shared<State>()),
      servers_(std::make_unique<Servers>(state_, plugin_dir_)) {
  std::filesystem::create_directories(plugin_dir_);
  std::filesystem::create_directories(root + "/pod-resources");
}

FakeKubelet::~FakeKubelet() { Stop(); }

void FakeKubelet::Start() {
  for (const auto& entry : std::filesystem::directory_iterator(plugin_dir_))
    std::filesystem::remove_all(entry.path());
  servers_->plugins = Serve(plugin_dir_ + "/kubelet.sock", servers_->registration);
  StartPodResources();
}

void FakeKubelet::StartPodResources() { servers_->pods = Serve(pod_resources_, servers_->lister); }
void FakeKubelet::StopPodResources() { EndNow(servers_->pods); }

void FakeKubelet::Stop(bool socket_stays) {
  const std::string socket = plugin_dir_ + "/kubelet.sock";
  if (socket_stays) std::filesystem::rename(socket, socket + ".kept");
  EndNow(servers_->plugins);
  if (socket_stays) std::filesystem::rename(socket + ".kept", socket);
  StopPodResources();
  std::vector<std::shared_ptr<Endpoint>> all;
  {
    const std::lock_guard lock(state_->mutex);
    while (!state_->endpoints.empty()) state_->Forget(state_->endpoints.begin()->first);
    all = std::exchange(state_->former, {});
    state_->devices.clear();
  }
  for (const auto& endpoint : all) endpoint->thread.join();
}

SeenDevices FakeKubelet::Devices(const std::string& resource) const {
  const std::lock_guard lock(state_->mutex);
  return state_->devices[resource];
}

bool FakeKubelet::Wait(const std::string& resource,
                       const std::function<bool(const SeenDevices&)>& wanted,
                       std::chrono::seconds within) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, within, [&] { return wanted(state_->devices[resource]); });
}

bool FakeKubelet::WaitHealthy(const std::string& resource, size_t count) const {
  return Wait(resource, [&](const SeenDevices& devices) {
    return static_cast<size_t>(std::ranges::count_if(
               devices, [](const auto& device) { return device.second.healthy; })) == count;
  });
}

int FakeKubelet::registrations(const std::string& resource) const {
  const std::lock_guard lock(state_->mutex);
  return state_->registrations[resource];
}

bool FakeKubelet::WaitRegistrations(const std::string& resource, int least) const {
  return Wait(resource,
              [&](const SeenDevices&) { return state_->registrations[resource] >= least; });
}

Admission FakeKubelet::Admit(const std::string& name_space, const std::string& pod,
                             const std::string& resource, const std::string& device, int count) {
  Admission admission;
  admission.device = device;
  std::string socket;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [id, seen] : state_->devices[resource]) {
      if (!admission.device.empty()) break;
      if (seen.healthy && !state_->holders.contains({resource, id})) admission.device = id;
    }
    if (admission.device.empty() || !state_->endpoints.contains(resource)) {
      admission.problem = "no healthy devices present; cannot allocate unhealthy devices";
      return admission;
    }
    socket = state_->endpoints[resource]->socket;
  }
  const auto stub = v1beta1::DevicePlugin::NewStub(ChannelTo(socket));
  v1beta1::AllocateRequest request;
  v1beta1::AllocateResponse response;
  auto& container = *request.add_container_requests();
  for (int i = 0; i < count; ++i) container.add_devices_ids(admission.device);
  grpc::ClientContext context;
  const grpc::Status status = stub->Allocate(&context, request, &response);
  if (!status.ok() || response.container_responses_size() != 1) {
    admission.problem = status.ok() ? "not one answer for one container" : status.error_message();
    return admission;
  }
  admission.container = response.container_responses(0);
  {
    const std::lock_guard lock(state_->mutex);
    state_->holders[{resource, admission.device}] = {name_space, pod};
  }
  admission.problem = StartAgain(resource, admission.device);
  return admission;
}

std::string FakeKubelet::StartAgain(const std::string& resource, const std::string& device) {
  std::string socket;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->endpoints.contains(resource)) return "no plugin for " + resource;
    socket = state_->endpoints[resource]->socket;
  }
  const auto stub = v1beta1::DevicePlugin::NewStub(ChannelTo(socket));
  v1beta1::PreStartContainerRequest request;
  v1beta1::PreStartContainerResponse response;
  request.add_devices_ids(device);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const grpc::Status status = stub->PreStartContainer(&context, request, &response);
  return status.ok() ? "" : status.error_message();
}

void FakeKubelet::Release(const std::string& name_space, const std::string& pod) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->holders,
                [&](const auto& entry) { return entry.second == std::pair(name_space, pod); });
}

void FakeKubelet::Finish(const std::string& name_space, const std::string& pod) {
  const std::lock_guard lock(state_->mutex);
  for (auto at = state_->holders.begin(); at != state_->holders.end();) {
    if (at->second == std::pair(name_space, pod)) {
      state_->finished.emplace_back(*at);
      at = state_->holders.erase(at);
    } else {
      ++at;
    }
  }
}

void FakeKubelet::MakeInit(const std::string& resource, const std::string& device,
                           const std::string& uid) {
  const std::lock_guard lock(state_->mutex);
  state_->of_init.insert({resource, device});
  // The fields as kubelet 1.36 writes them.
  std::ofstream(plugin_dir_ + "/kubelet_internal_checkpoint")
      << R"({"Data":{"PodDeviceEntries":[{"PodUID":")" << uid
      << R"(","ContainerName":"init","ResourceName":")" << resource << R"(","DeviceIDs":{"-1":[")"
      << device << R"("]},"AllocResp":""}],"RegisteredDevices":{}},"Checksum":1})";
}

void FakeKubelet::LimitRate(double used_up) {
  const std::lock_guard lock(state_->mutex);
  state_->tokens = -used_up;
  state_->filled_at = std::chrono::steady_clock::now();
}

int FakeKubelet::turned_away() const {
  const std::lock_guard lock(state_->mutex);
  return state_->turned_away;
}

}  // namespace rocegw::testing
