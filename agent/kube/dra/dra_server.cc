// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/dra_server.h"

#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

#include "agent/kube/cdi_spec.h"
#include "agent/kube/loop_call.h"
#include "draplugin.grpc.pb.h"
#include "pluginregistration.grpc.pb.h"

namespace rocegw::agent {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

// Limit of claims per call; kubelet sends those of one pod.
constexpr int kMostClaims = 64;

bool IsSocket(const std::string& path) {
  struct stat found;
  return ::stat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

StatusOr<std::unique_ptr<grpc::Server>> Serve(const std::string& socket, grpc::Service& service) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(socket).parent_path(), error);
  if (error) return Status(error.value(), socket + ": " + error.message());
  ::unlink(socket.c_str());
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  if (server == nullptr) return Status(EIO, socket + ": gRPC could not start there");
  return server;
}

void EndNow(std::unique_ptr<grpc::Server>& server) {
  if (server == nullptr) return;
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
  server.reset();
}

dra::NodePrepareResourceResponse ResponseOf(const StatusOr<PreparedClaim>& prepared,
                                            const std::string& node) {
  dra::NodePrepareResourceResponse response;
  if (!prepared.ok()) {
    response.set_error(prepared.status().text());
    return response;
  }
  for (const PreparedDevice& device : prepared.value().devices) {
    dra::Device& one = *response.add_devices();
    // Without the subrequest's name: kubelet knows requests only.
    one.add_request_names(device.request.substr(0, device.request.find('/')));
    one.set_pool_name(node);
    one.set_device_name(device.device);
    one.add_cdi_device_ids(CdiDeviceName(CdiKind::kClaim, device.slot));
  }
  return response;
}

}  // namespace

class DraServer::Registration final : public pluginregistration::Registration::CallbackService {
 public:
  Registration(ControlLoop& loop, std::function<void(const std::string&)> registered)
      : loop_(loop), registered_(std::move(registered)) {}
  ~Registration() override { *alive_ = false; }

  // Must be called before the server starts.
  void SetEndpoint(const std::string& endpoint) { endpoint_ = endpoint; }

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest*,
                                    pluginregistration::PluginInfo* info) override {
    info->set_type("DRAPlugin");
    info->set_name(kDraDriver);
    info->set_endpoint(endpoint_);
    info->add_supported_versions("v1.DRAPlugin");
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext*, const pluginregistration::RegistrationStatus* status,
      pluginregistration::RegistrationStatusResponse* response) override {
    const std::string problem = status->plugin_registered() ? ""
                                : status->error().empty()   ? "kubelet does not say why"
                                                            : status->error();
    return CallOnLoop(loop_, alive_, response, [this, problem](auto answer) {
      registered_(problem);
      answer->Finish(grpc::Status::OK, {});
    });
  }

 private:
  ControlLoop& loop_;
  const std::function<void(const std::string&)> registered_;
  std::string endpoint_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class DraServer::Plugin final : public dra::DRAPlugin::CallbackService {
 public:
  Plugin(ControlLoop& loop, ClaimPreparer& preparer) : loop_(loop), preparer_(preparer) {}
  ~Plugin() override { *alive_ = false; }

  grpc::ServerUnaryReactor* NodePrepareResources(
      grpc::CallbackServerContext*, const dra::NodePrepareResourcesRequest* request,
      dra::NodePrepareResourcesResponse* response) override {
    return CallOnLoop(loop_, alive_, response, [this, request = *request](auto answer) {
      if (request.claims_size() > kMostClaims) {
        return answer->Finish({grpc::StatusCode::INVALID_ARGUMENT, "too many claims at once"}, {});
      }
      auto all = std::make_shared<dra::NodePrepareResourcesResponse>();
      // The number of claims plus one: the answer is sent only after all have been started.
      auto left = std::make_shared<int>(request.claims_size() + 1);
      const auto one_less = [all, left, answer] {
        if (--*left == 0) answer->Finish(grpc::Status::OK, *all);
      };
      for (const dra::Claim& claim : request.claims()) {
        preparer_.Prepare({claim.namespace_(), claim.name(), claim.uid()},
                          [this, all, one_less, uid = claim.uid()](const auto& prepared) {
                            (*all->mutable_claims())[uid] = ResponseOf(prepared, preparer_.node());
                            one_less();
                          });
      }
      one_less();
    });
  }
  grpc::ServerUnaryReactor* NodeUnprepareResources(
      grpc::CallbackServerContext*, const dra::NodeUnprepareResourcesRequest* request,
      dra::NodeUnprepareResourcesResponse* response) override {
    return CallOnLoop(loop_, alive_, response, [this, request = *request](auto answer) {
      dra::NodeUnprepareResourcesResponse all;
      for (const dra::Claim& claim : request.claims())
        (*all.mutable_claims())[claim.uid()].set_error(preparer_.Unprepare(claim.uid()).text());
      answer->Finish(grpc::Status::OK, all);
    });
  }

 private:
  ControlLoop& loop_;
  ClaimPreparer& preparer_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

DraServer::DraServer(ControlLoop& loop, ClaimPreparer& preparer,
                     std::function<void(const std::string&)> registered)
    : registration_(std::make_unique<Registration>(loop, std::move(registered))),
      plugin_(std::make_unique<Plugin>(loop, preparer)) {}

DraServer::~DraServer() {
  Stop();
  // kubelet considers the driver gone when this socket is removed.
  if (!registration_socket_.empty()) ::unlink(registration_socket_.c_str());
}

void DraServer::Stop() {
  EndNow(registration_server_);
  EndNow(plugin_server_);
}

Status DraServer::Start(const std::string& registration_socket, const std::string& plugin_socket) {
  Stop();
  registration_socket_ = registration_socket;
  plugin_socket_ = plugin_socket;
  registration_->SetEndpoint(plugin_socket);
  auto plugin = Serve(plugin_socket, *plugin_);
  if (!plugin.ok()) return plugin.status();
  plugin_server_ = std::move(*plugin);
  auto registration = Serve(registration_socket, *registration_);
  if (!registration.ok()) return registration.status();
  registration_server_ = std::move(*registration);
  return OkStatus();
}

bool DraServer::IsThere() const {
  return registration_server_ != nullptr && IsSocket(registration_socket_) &&
         IsSocket(plugin_socket_);
}

}  // namespace rocegw::agent
