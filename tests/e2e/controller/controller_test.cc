// SPDX-License-Identifier: Apache-2.0
// The controller's program from outside: a start with nothing at all, what it prints, restarts,
// second instances, what it says when the machine is not as it should be. The openssl command reads
// the certificates independently.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "controlplane/identity/join_token.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"
#include "tests/support/network/network_namespace.h"

namespace rocegw::testing {
namespace {

namespace fs = std::filesystem;
using admin::v1::Tenants;

std::vector<std::string> TenantsOf(const ControllerHost& host) {
  admin::v1::ListTenantsResponse response;
  const grpc::Status status =
      Tenants::NewStub(host.AdminChannel())->ListTenants(ContextFor().get(), {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  std::vector<std::string> names;
  for (const auto& tenant : response.tenants()) names.push_back(tenant.name());
  return names;
}

mode_t ModeOf(const std::string& file) {
  struct stat info {};
  EXPECT_EQ(stat(file.c_str(), &info), 0) << file;
  return info.st_mode & 07777;
}

// Everything at its default but the state directory, on a host of its own.
TEST(Controller, WithoutConfiguration_MakesAllItNeedsAndSaysHowToJoin) {
  auto space = NetworkNamespace::Create();
  ASSERT_TRUE(space.ok()) << space.status().text();
  char pattern[] = "/tmp/rocegw-controller-XXXXXX";
  ASSERT_NE(mkdtemp(pattern), nullptr);
  const std::string directory = pattern;
  const std::string state = directory + "/state";
  {
    DaemonProcess controller(*space, CONTROLLER_PROGRAM, directory, {"--state-dir", state});
    ASSERT_TRUE(controller.WaitReady()) << controller.Log();
    EXPECT_EQ(ModeOf(state), 0700u);
    for (const char* name : {"ca.key", "server.key", "fleet.db", "join.yaml", "admin.sock"}) {
      EXPECT_EQ(ModeOf(state + "/" + name), 0600u) << name;
    }
    EXPECT_NE(controller.Output().find("rocegw-agent --join " + state + "/join.yaml"),
              std::string::npos)
        << controller.Output();
    // Judged by others: the chain, the names, the handshake, the metrics.
    const std::string trust = " -CAfile " + state + "/ca.crt ";
    Shell("openssl verify -x509_strict -purpose sslserver" + trust + state + "/server.crt");
    Shell("openssl verify -x509_strict -purpose sslserver -verify_hostname controller.rocegw" +
          trust + state + "/server.crt");
    const Status handshake =
        space->Run("openssl s_client -connect 127.0.0.1:7471 -alpn h2 -verify_ip 127.0.0.1" +
                   trust + "</dev/null 2>&1 | tee " + directory +
                   "/tls | grep -q 'Verify return code: 0 (ok)' || "
                   "{ cat " +
                   directory + "/tls; false; }");
    EXPECT_TRUE(handshake.ok()) << handshake.text();
    const auto page = [](const std::string& path) {
      return "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:7472" +
             path + "', timeout=9).read().decode(), end='')\" ";
    };
    const Status ready = space->Run(page("/readyz") + "| grep -qx ok");
    EXPECT_TRUE(ready.ok()) << ready.text();
    const Status metrics = space->Run(page("/metrics") + "| promtool check metrics");
    EXPECT_TRUE(metrics.ok()) << metrics.text();
    controller.Signal(SIGTERM);
    EXPECT_EQ(controller.WaitExit(), 0) << controller.Log();
    EXPECT_FALSE(fs::exists(state + "/admin.sock"));
  }
  fs::remove_all(directory);
}

TEST(Controller, FirstJoinFile_LetsOneHostIn) {
  ControllerHost host;
  host.Start();
  auto text = std::ifstream(host.State("join.yaml"));
  const auto file = identity::ReadJoinFile({std::istreambuf_iterator<char>(text), {}});
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value().controllers, std::vector<std::string>{host.address()});
  const NodeKey key = NewNodeKey();
  fleet::v1::JoinRequest request;
  request.set_gateway("gateways/a");
  request.set_token(file.value().token);
  request.set_certificate_request(key.request);
  fleet::v1::JoinResponse response;
  const auto stub = fleet::v1::NodeService::NewStub(
      host.TlsChannel({.key = {}, .certificate = {}, .trust = file.value().trust_bundle},
                      file.value().server_name));
  const grpc::Status joined = stub->Join(ContextFor().get(), request, &response);
  ASSERT_TRUE(joined.ok()) << joined.error_message();
  std::ofstream(host.File("node.crt")) << response.certificate_chain();
  std::ofstream(host.File("bundle.crt")) << response.trust_bundle();
  Shell("openssl verify -x509_strict -purpose sslclient -CAfile " + host.File("bundle.crt") + " " +
        host.File("node.crt"));
  const std::string read = Shell("openssl x509 -noout -text -in " + host.File("node.crt"));
  EXPECT_NE(read.find("URI:spiffe://rocegw/node/a\n"), std::string::npos) << read;
  request.set_gateway("gateways/b");
  EXPECT_EQ(ReasonOf(stub->Join(ContextFor().get(), request, &response)), "TOKEN_USED");
}

TEST(Controller, JoinTokenCommand_PrintsAFileForTheNamedHost) {
  ControllerHost host;
  host.Start();
  const std::string command = std::string(CONTROLLER_PROGRAM) + " --config " + host.config_file();
  const auto file =
      identity::ReadJoinFile(Shell(command + " join-token --gateway a --lifetime 10m"));
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value().gateway, "gateways/a");
  EXPECT_NE(std::system((command + " join-token --lifetime 2d >/dev/null 2>&1").c_str()), 0);
  EXPECT_EQ(host.Stop(), 0);
  const std::string gone = Shell(command + " join-token || true");
  EXPECT_NE(gone.find("admin.sock"), std::string::npos) << gone;
}

TEST(Controller, KilledAndStartedAgain_HasWhatWasAcknowledged) {
  ControllerHost host;
  host.Start();
  const Credential node = host.JoinNode("a");
  const std::string trust = host.trust();
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    host.CreateTenant("t" + std::to_string(10 + i));
    names.push_back("tenants/t" + std::to_string(10 + i));
  }
  host.Kill();
  host.Start();
  EXPECT_EQ(TenantsOf(host), names);
  EXPECT_EQ(host.trust(), trust);
  const NodeKey key = NewNodeKey();
  fleet::v1::RenewRequest request;
  request.set_gateway("gateways/a");
  request.set_certificate_request(key.request);
  fleet::v1::RenewResponse response;
  const grpc::Status renewed = fleet::v1::NodeService::NewStub(host.TlsChannel(node))
                                   ->Renew(ContextFor().get(), request, &response);
  EXPECT_TRUE(renewed.ok()) << renewed.error_message();
  EXPECT_EQ(host.process().Output().find("join.yaml"), std::string::npos) << "not the first start";
}

TEST(Controller, AskedToStop_EndsOpenStreamsAndLeaves) {
  ControllerHost host;
  host.Start();
  const auto admin = Tenants::NewStub(host.AdminChannel());
  const auto context = ContextFor(std::chrono::seconds(60));
  const auto watch = admin->WatchTenants(context.get(), {});
  admin::v1::WatchTenantsResponse seen;
  ASSERT_TRUE(watch->Read(&seen));
  const auto nodes = fleet::v1::NodeService::NewStub(host.TlsChannel(host.JoinNode("a")));
  const auto sync_context = ContextFor(std::chrono::seconds(60));
  const auto stream = nodes->Sync(sync_context.get());
  fleet::v1::SyncRequest hello;
  fleet::v1::SyncResponse push;
  hello.mutable_hello()->set_gateway("gateways/a");
  ASSERT_TRUE(stream->Write(hello) && stream->Read(&push));
  EXPECT_EQ(host.Stop(), 0) << host.process().Log();
  EXPECT_FALSE(watch->Read(&seen));
  EXPECT_FALSE(watch->Finish().ok());
  while (stream->Read(&push)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(Controller, SecondInstance_IsRefusedWithTheReason) {
  ControllerHost host;
  host.Start();
  const std::string other = host.File("other");
  fs::create_directory(other);
  DaemonProcess second(CONTROLLER_PROGRAM, other, {"--config", host.config_file()});
  EXPECT_EQ(second.WaitExit(), 3);
  EXPECT_NE(second.Log().find("belongs to process " + std::to_string(host.process().pid()) +
                              "; stop that rocegw-controller, or set state_dir"),
            std::string::npos)
      << second.Log();
  // Another directory, the same port.
  DaemonProcess third(CONTROLLER_PROGRAM, other,
                      {"--config", host.config_file(), "--state-dir", host.File("state2")});
  EXPECT_EQ(third.WaitExit(), 3);
  EXPECT_NE(third.Log().find(host.address() + ": cannot listen there: Address already in use"),
            std::string::npos)
      << third.Log();
  EXPECT_EQ(TenantsOf(host), std::vector<std::string>());
}

TEST(Controller, StoreOfAnotherFleet_IsRefused) {
  ControllerHost host;
  host.Start();
  ASSERT_EQ(host.Stop(), 0);
  ControllerHost other;
  other.Start();
  ASSERT_EQ(other.Stop(), 0);
  fs::copy_file(host.State("fleet.db"), other.State("fleet.db"),
                fs::copy_options::overwrite_existing);
  for (const char* log : {"fleet.db-wal", "fleet.db-shm"}) fs::remove(other.State(log));
  DaemonProcess wrong(CONTROLLER_PROGRAM, other.File(""), {"--config", other.config_file()});
  EXPECT_EQ(wrong.WaitExit(), 3);
  EXPECT_NE(wrong.Log().find("another certificate authority"), std::string::npos) << wrong.Log();
}

TEST(Controller, Configuration_IsCheckedAndReadAgain) {
  ControllerHost host("log_level: info\n");
  const std::string command = std::string(CONTROLLER_PROGRAM) + " --config " + host.config_file();
  EXPECT_NE(Shell(command + " --check-config").find(": good"), std::string::npos);
  host.Start();
  std::ofstream(host.config_file(), std::ios::app) << "keep_history: 1x\n";
  EXPECT_EQ(WEXITSTATUS(std::system((command + " --check-config 2>/dev/null").c_str())), 2);
  host.process().Signal(SIGHUP);
  EXPECT_TRUE(host.process().NextNotification().starts_with("RELOADING=1"));
  EXPECT_TRUE(host.process().WaitReady());
  EXPECT_TRUE(host.process().Logs("keep_history: '1x' is not a duration"));
  EXPECT_EQ(host.Stop(), 0);
  EXPECT_EQ(WEXITSTATUS(
                std::system((std::string(CONTROLLER_PROGRAM) + " --nonsense 2>/dev/null").c_str())),
            2);
  const std::string shown = Shell(std::string(CONTROLLER_PROGRAM) + " --print-default-config");
  std::ofstream(host.File("default.yaml")) << shown;
  Shell(std::string(CONTROLLER_PROGRAM) + " --check-config --config " + host.File("default.yaml"));
}

}  // namespace
}  // namespace rocegw::testing
