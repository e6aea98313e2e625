// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/controller/controller_host.h"

#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "controlplane/identity/join_token.h"
#include "gateway/disk/durable_file.h"
#include "google/rpc/error_details.pb.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/admin/v1/role_bindings.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"

namespace rocegw::testing {
namespace {

std::string Content(const std::string& file) {
  auto text = ReadSmallFile(file);
  EXPECT_TRUE(text.ok()) << text.status().text();
  return text.ok() ? *text : std::string();
}

}  // namespace

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(fd);
  return ntohs(address.sin_port);
}

std::unique_ptr<grpc::ClientContext> ContextFor(std::chrono::seconds time) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + time);
  return context;
}

// gRPC brings no C++ text of the health service's messages: an empty request asks for the whole
// server, and what it answers is a field that an empty message does not know, 1 for SERVING.
grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel, HealthAnswer* answer) {
  using google::protobuf::Empty;
  using google::protobuf::MessageLite;
  const grpc::internal::RpcMethod method("/grpc.health.v1.Health/Check",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const auto context = ContextFor();
  const Empty request;
  Empty response;
  grpc::Status status = grpc::internal::BlockingUnaryCall<Empty, Empty, MessageLite, MessageLite>(
      channel.get(), method, context.get(), request, &response);
  if (answer == nullptr || !status.ok()) return status;
  const auto& fields = Empty::GetReflection()->GetUnknownFields(response);
  answer->serving = fields.field_count() == 1 && fields.field(0).varint() == 1;
  const auto pem = context->auth_context()->FindPropertyValues("x509_pem_cert");
  if (!pem.empty()) answer->certificate = std::string(pem[0].data(), pem[0].size());
  return status;
}

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details_size() == 0) return {};
  return details.details(0).UnpackTo(&info) ? info.reason() : std::string();
}

NodeKey NewNodeKey() {
  auto key = identity::NewKey();
  return {.key = identity::KeyToPem(**key).value(),
          .request = identity::NewCertificateRequest(**key).value()};
}

std::string Shell(const std::string& command) {
  FILE* const pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << text;
  return text;
}

ControllerHost::ControllerHost(const std::string& more) : port_(FreePort()) {
  char pattern[] = "/tmp/rocegw-controller-XXXXXX";
  EXPECT_NE(mkdtemp(pattern), nullptr);
  directory_ = pattern;
  std::ofstream(config_file()) << "state_dir: " << directory_ << "/state\naddress: " << address()
                               << "\nmetrics: {address: ''}\n"
                               << more;
}

ControllerHost::~ControllerHost() {
  process_.reset();
  std::filesystem::remove_all(directory_);
}

void ControllerHost::Start() {
  process_.emplace(CONTROLLER_PROGRAM, directory_,
                   std::vector<std::string>{"--config", config_file()});
  ASSERT_TRUE(process_->WaitReady()) << process_->Log();
}

void ControllerHost::StartIn(const std::string& shell) {
  process_.emplace("/bin/sh", directory_,
                   std::vector<std::string>{"-c", shell + "exec \"$0\" \"$@\"", CONTROLLER_PROGRAM,
                                            "--config", config_file()});
}

void ControllerHost::StartWithDescriptors(int descriptors) {
  StartIn("ulimit -n " + std::to_string(descriptors) + "; ");
  ASSERT_TRUE(process_->WaitReady()) << process_->Log();
}

void ControllerHost::StartWithClock() {
  StartIn("export LD_PRELOAD=" SHIFTED_CLOCK " ROCEGW_TEST_CLOCK=" + File("clock") + "; ");
  ASSERT_TRUE(process_->WaitReady()) << process_->Log();
}

std::string ControllerHost::FailWithClock() {
  StartIn("export LD_PRELOAD=" SHIFTED_CLOCK " ROCEGW_TEST_CLOCK=" + File("clock") + "; ");
  EXPECT_EQ(process_->WaitExit(), 3);
  return process_->Log();
}

bool ControllerHost::TryStart() {
  StartIn("");
  return process_->WaitReady();
}

std::string ControllerHost::Fail() {
  StartIn("");
  EXPECT_EQ(process_->WaitExit(), 3);
  return process_->Log();
}

void ControllerHost::Kill() {
  process_->Signal(SIGKILL);
  process_->WaitExit();
}

int ControllerHost::Stop() {
  process_->Signal(SIGTERM);
  return process_->WaitExit();
}

std::string ControllerHost::trust() const { return Content(State("ca.crt")); }

std::shared_ptr<grpc::Channel> ControllerHost::AdminChannel() const {
  return grpc::CreateChannel("unix:" + State("admin.sock"),
                             grpc::experimental::LocalCredentials(UDS));
}

std::shared_ptr<grpc::Channel> ControllerHost::TlsChannel(const Credential& credential,
                                                          const std::string& server_name) const {
  grpc::ChannelArguments arguments;
  // Otherwise all channels of the test share connections.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!server_name.empty()) arguments.SetSslTargetNameOverride(server_name);
  return grpc::CreateCustomChannel(address(),
                                   grpc::SslCredentials({.pem_root_certs = credential.trust,
                                                         .pem_private_key = credential.key,
                                                         .pem_cert_chain = credential.certificate}),
                                   arguments);
}

Credential ControllerHost::MakeUser(const std::string& name) const {
  Shell(std::string(CONTROLLER_PROGRAM) + " --config " + config_file() + " user-certificate " +
        name + " --out " + directory_);
  return {.key = Content(File(name + ".key")),
          .certificate = Content(File(name + ".crt")),
          .trust = Content(File("ca.crt"))};
}

std::string ControllerHost::MakeJoinFile(const std::string& id) const {
  admin::v1::CreateJoinTokenRequest wish;
  wish.set_name("gateways/" + id);
  admin::v1::CreateJoinTokenResponse made;
  const grpc::Status status = admin::v1::Gateways::NewStub(AdminChannel())
                                  ->CreateJoinToken(ContextFor().get(), wish, &made);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return made.token_file();
}

void ControllerHost::PrepareAgent() const {
  std::filesystem::create_directory(File("agent"));
  std::ofstream(File("join.yaml")) << MakeJoinFile("node");
  std::ofstream(File("agent.yaml"))
      << "state_dir: " << File("agent") << "\nmetrics: {address: ''}\n"
      << "gateway_socket: " << File("none.sock") << "\n";
}

std::string ControllerHost::JoinCommand() const {
  return std::string(AGENT_PROGRAM) + " --state-dir " + File("agent") + " --join " +
         File("join.yaml");
}

Credential ControllerHost::JoinNode(const std::string& id) const {
  const auto file = identity::ReadJoinFile(MakeJoinFile(id));
  EXPECT_TRUE(file.ok()) << file.status().text();
  const NodeKey key = NewNodeKey();
  fleet::v1::JoinRequest request;
  request.set_gateway("gateways/" + id);
  request.set_token(file.value().token);
  request.set_certificate_request(key.request);
  fleet::v1::JoinResponse response;
  const grpc::Status status =
      fleet::v1::NodeService::NewStub(
          TlsChannel({.key = {}, .certificate = {}, .trust = file.value().trust_bundle},
                     file.value().server_name))
          ->Join(ContextFor().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {.key = key.key,
          .certificate = response.certificate_chain(),
          .trust = response.trust_bundle()};
}

std::unique_ptr<identity::CertificateAuthority> ControllerHost::Authority() const {
  auto authority = identity::CertificateAuthority::Open(directory_ + "/state", "rocegw");
  EXPECT_TRUE(authority.ok()) << authority.status().text();
  return std::move(*authority);
}

void ControllerHost::Bind(const std::string& user, types::v1::Role role,
                          const std::string& tenant) const {
  admin::v1::CreateRoleBindingRequest request;
  types::v1::RoleBinding& binding = *request.mutable_role_binding();
  binding.set_name("roleBindings/" + user);
  binding.mutable_spec()->set_subject("spiffe://rocegw/user/" + user);
  binding.mutable_spec()->set_role(role);
  binding.mutable_spec()->set_tenant(tenant);
  types::v1::RoleBinding response;
  const grpc::Status status = admin::v1::RoleBindings::NewStub(AdminChannel())
                                  ->CreateRoleBinding(ContextFor().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

void ControllerHost::CreateTenant(const std::string& id) const {
  admin::v1::CreateTenantRequest request;
  request.mutable_tenant()->set_name("tenants/" + id);
  types::v1::Tenant response;
  const grpc::Status status = admin::v1::Tenants::NewStub(AdminChannel())
                                  ->CreateTenant(ContextFor().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace rocegw::testing
