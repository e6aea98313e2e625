// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kubelet/dra_kubelet.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "draplugin.grpc.pb.h"
#include "pluginregistration.grpc.pb.h"

namespace rocegw::testing {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
constexpr std::chrono::seconds kPatience(20);

std::shared_ptr<grpc::Channel> ConnectionTo(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 20);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

void SetUp(grpc::ClientContext& context) {
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
}

template <typename Request>
void Add(Request& request, const ClaimOfAPod& claim) {
  auto& one = *request.add_claims();
  one.set_namespace_(claim.name_space);
  one.set_name(claim.name);
  one.set_uid(claim.uid);
}

}  // namespace

DraKubelet::DraKubelet(const std::string& root) : root_(root) {
  std::filesystem::create_directories(plugins_dir());
  std::filesystem::create_directories(registry_dir());
}

bool DraKubelet::Register(const std::string& driver) {
  const auto stub = pluginregistration::Registration::NewStub(
      ConnectionTo(registry_dir() + "/" + driver + "-reg.sock"));
  grpc::ClientContext asking;
  SetUp(asking);
  if (!stub->GetInfo(&asking, {}, &info_).ok()) return false;
  const auto& versions = info_.supported_versions();
  const bool good = info_.type() == "DRAPlugin" && info_.name() == driver &&
                    std::ranges::count(versions, "v1.DRAPlugin") == 1;
  pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(good);
  if (!good) status.set_error("no plugin of a kind and version that is known");
  pluginregistration::RegistrationStatusResponse ignored;
  grpc::ClientContext telling;
  SetUp(telling);
  return stub->NotifyRegistrationStatus(&telling, status, &ignored).ok() && good;
}

dra::NodePrepareResourceResponse DraKubelet::Prepare(const ClaimOfAPod& claim) const {
  const auto stub = dra::DRAPlugin::NewStub(ConnectionTo(info_.endpoint()));
  dra::NodePrepareResourcesRequest request;
  Add(request, claim);
  dra::NodePrepareResourcesResponse response;
  grpc::ClientContext context;
  SetUp(context);
  const grpc::Status status = stub->NodePrepareResources(&context, request, &response);
  dra::NodePrepareResourceResponse failed;
  failed.set_error(status.ok() ? "no answer for the claim" : status.error_message());
  const auto found = response.claims().find(claim.uid);
  return status.ok() && found != response.claims().end() ? found->second : failed;
}

std::string DraKubelet::Unprepare(const ClaimOfAPod& claim) const {
  const auto stub = dra::DRAPlugin::NewStub(ConnectionTo(info_.endpoint()));
  dra::NodeUnprepareResourcesRequest request;
  Add(request, claim);
  dra::NodeUnprepareResourcesResponse response;
  grpc::ClientContext context;
  SetUp(context);
  const grpc::Status status = stub->NodeUnprepareResources(&context, request, &response);
  if (!status.ok()) return status.error_message();
  const auto found = response.claims().find(claim.uid);
  return found == response.claims().end() ? "no answer for the claim" : found->second.error();
}

}  // namespace rocegw::testing
