// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/device_plugin.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "agent/kube/cdi_spec.h"
#include "agent/reconcile/unary_call.h"
#include "deviceplugin.grpc.pb.h"

namespace rocegw::agent {
namespace {

constexpr char kVersion[] = "v1beta1";
constexpr std::chrono::seconds kRegisterDeadline(10);

// Inode numbers may be reused at once, so the creation time is included.
std::string SocketIdentity(const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return {};
  return std::to_string(found.st_ino) + "@" + std::to_string(found.st_ctim.tv_sec) + "." +
         std::to_string(found.st_ctim.tv_nsec);
}

struct Kubelet {
  explicit Kubelet(std::shared_ptr<grpc::Channel> c)
      : channel(std::move(c)), stub(v1beta1::Registration::NewStub(channel)) {}
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1beta1::Registration::Stub> stub;
};

}  // namespace

DevicePlugin::DevicePlugin(ControlLoop& loop, SlotAllocator& slots, std::string folder,
                           ContainerSettings containers)
    : loop_(loop), slots_(slots), folder_(std::move(folder)), containers_(std::move(containers)) {}

DevicePlugin::~DevicePlugin() { *alive_ = false; }

void DevicePlugin::Update() {
  for (auto& [name, resource] : resources_) resource.server->Update();
  Look();
  if (containers_.cdi_dir.empty()) return;
  std::set<std::string> offered;
  for (const std::string& name : slots_.Resources())
    for (const OfferedSlot& slot : slots_.Slots(name)) offered.insert(slot.id);
  KeepCdiSpecs(containers_.cdi_dir, CdiKind::kSlot, offered);
}

void DevicePlugin::Look() {
  const std::string kubelet = SocketIdentity(folder_ + "/kubelet.sock");
  if (kubelet != kubelet_) {
    if (!kubelet.empty()) ++kubelet_life_;
    kubelet_ = kubelet;
    for (auto& [name, resource] : resources_) resource.registered = false;
  }
  for (const std::string& name : slots_.Resources()) {
    Resource& resource = resources_[name];
    if (resource.server == nullptr)
      resource.server = std::make_unique<PluginServer>(loop_, slots_, name, containers_);
    if (!kubelet_.empty()) Serve(name, resource);
  }
  Count();
}

void DevicePlugin::Serve(const std::string& name, Resource& resource) {
  // kubelet empties its directory when it starts.
  if (!resource.running || SocketIdentity(SocketOf(name)).empty()) {
    resource.registered = false;
    const Status status = resource.server->Start(SocketOf(name));
    resource.running = status.ok();
    if (!status.ok()) return Say(status.text());
  }
  if (!resource.registered && !resource.registering) Register(name);
}

std::string DevicePlugin::SocketOf(const std::string& resource) const {
  return folder_ + "/rocegw-" + resource.substr(std::strlen(kResourceDomain)) + ".sock";
}

void DevicePlugin::Register(const std::string& name) {
  resources_[name].registering = true;
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(SocketOf(name).substr(folder_.size() + 1));
  request.set_resource_name(name);
  request.mutable_options()->set_pre_start_required(true);
  grpc::ChannelArguments arguments;
  // Keeps connections to a restarted kubelet apart from those to the earlier one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto kubelet = std::make_shared<Kubelet>(grpc::CreateCustomChannel(
      "unix:" + folder_ + "/kubelet.sock", grpc::InsecureChannelCredentials(), arguments));
  StartUnary<v1beta1::Empty>(
      loop_, kubelet, std::move(request), In(kRegisterDeadline),
      [&kubelet](auto... call) { kubelet->stub->async()->Register(call...); },
      [this, name, life = kubelet_life_, alive = alive_](const grpc::Status& status,
                                                         const v1beta1::Empty&) {
        if (*alive) OnRegistered(name, life, status.ok() ? "" : status.error_message());
      });
}

void DevicePlugin::OnRegistered(const std::string& name, uint64_t life,
                                const std::string& problem) {
  Resource& resource = resources_[name];
  resource.registering = false;
  if (!problem.empty()) return Say("kubelet does not take " + name + ": " + problem);
  if (life != kubelet_life_ || kubelet_.empty()) return;
  resource.registered = true;
  last_problem_.clear();
  ++counters_.registrations;
  spdlog::info("kubelet offers {}", name);
  Count();
}

void DevicePlugin::Say(const std::string& problem) {
  if (std::exchange(last_problem_, problem) != problem) spdlog::warn("{}", problem);
}

void DevicePlugin::Count() {
  uint64_t registered = 0;
  uint64_t allocations = 0;
  uint64_t healthy = 0;
  uint64_t unhealthy = 0;
  for (const auto& [name, resource] : resources_) {
    registered += resource.registered ? 1 : 0;
    allocations += resource.server->allocations();
    for (const OfferedSlot& slot : slots_.Slots(name)) ++(slot.healthy ? healthy : unhealthy);
  }
  counters_.registered = registered;
  counters_.allocations = allocations;
  counters_.healthy_slots = healthy;
  counters_.unhealthy_slots = unhealthy;
}

}  // namespace rocegw::agent
