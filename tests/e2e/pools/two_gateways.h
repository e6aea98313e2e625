// SPDX-License-Identifier: Apache-2.0
// The gateway of pools_fixture.h and another one on a host beside it, on which a program of each
// tenant serves at 10.9.0.3. Needs root.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/pools/pools_fixture.h"

namespace rocegw::testing {

inline constexpr char kThereConfig[] = R"(name: host-b
workers: 1
ports: [{interface: veth1}]
metrics: {address: ''}
static:
  tenants:
    - name: tenants/red
    - name: tenants/blue
  pools:
    - name: tenants/red/pools/there
      uid: 11111111-0000-4000-8000-000000000000
      spec: {slots: 1}
    - name: tenants/blue/pools/there
      uid: 22222222-0000-4000-8000-000000000000
      spec: {slots: 1}
)";

// A program that runs until it is let go.
class HeldProgram {
 public:
  HeldProgram(const std::string& command, const std::string& input) : input_(input) {
    EXPECT_EQ(mkfifo(input.c_str(), 0600), 0);
    open_.Reset(open(input.c_str(), O_RDWR | O_CLOEXEC));
    program_ = popen((command + " <" + input).c_str(), "re");
  }
  ~HeldProgram() { End(); }
  HeldProgram(const HeldProgram&) = delete;
  HeldProgram& operator=(const HeldProgram&) = delete;

  void End() {
    if (program_ == nullptr) return;
    open_.Reset();
    pclose(program_);
    program_ = nullptr;
    ::unlink(input_.c_str());
  }
  // The next line that it prints; waits for it.
  std::string Line() {
    char line[256] = "";
    std::string text = std::fgets(line, sizeof line, program_) == nullptr ? "" : line;
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }

 private:
  const std::string input_;
  UniqueFd open_;
  FILE* program_ = nullptr;
};

class TwoGateways : public PoolsE2e {
 protected:
  void SetUp() override {
    PoolsE2e::SetUp();
    if (HasFatalFailure()) return;
    auto space = NetworkNamespace::Create();
    ASSERT_TRUE(space.ok()) << space.status().text();
    there_.emplace(std::move(*space));
    Status made = space_->Run("ip link set veth1 netns " + there_->path());
    ASSERT_TRUE(made.ok()) << made.text();
    made = there_->Run("ip link set veth1 up && ip address add 10.9.0.3/24 dev veth1");
    ASSERT_TRUE(made.ok()) << made.text();
    fs::create_directories(File("there"));
    std::ofstream(File("there/config.yaml")) << "runtime_dir: " << File("there/run") << "\n"
                                             << kThereConfig;
    other_.emplace(*there_, ROCEGWD, File("there"),
                   std::vector<std::string>{"--config", File("there/config.yaml")});
    ASSERT_TRUE(other_->WaitReady()) << other_->Log();
    Serve("red", "11111111");
    Serve("blue", "22222222");
  }
  void TearDown() override {
    servers_.clear();
    other_.reset();
    PoolsE2e::TearDown();
  }
  static std::string PortOf(const std::string& tenant) { return tenant == "red" ? "7000" : "7001"; }
  void Serve(const std::string& tenant, const std::string& folder) {
    const NetworkNamespace::Inside inside(*there_);
    servers_[tenant] = std::make_unique<HeldProgram>(
        std::string(ROCEGW_RUN) + " --socket " + File("there/run/a/" + folder + "/0/attach.sock") +
            " -- " PEER_PROBE " serve 10.9.0.3 " + PortOf(tenant) + " 2>&1",
        File("server-" + tenant));
    ASSERT_EQ(servers_[tenant]->Line(), "listening");
  }
  // So many connections of a program of the tenant's pool to the one of the tenant there.
  std::unique_ptr<HeldProgram> Connect(const std::string& tenant, int count) {
    const NetworkNamespace::Inside inside(*space_);
    return std::make_unique<HeldProgram>(
        Command(tenant, "connect 10.9.0.3 " + PortOf(tenant) + " " + std::to_string(count),
                PEER_PROBE),
        File("input" + std::to_string(++programs_)));
  }
  std::vector<types::v1::QueuePair> Qps() const {
    gateway::v1::ListQpsResponse qps;
    EXPECT_TRUE(state_->ListQps(Soon().get(), {}, &qps).ok());
    return {qps.qps().begin(), qps.qps().end()};
  }

  std::optional<NetworkNamespace> there_;
  std::optional<DaemonProcess> other_;
  std::map<std::string, std::unique_ptr<HeldProgram>> servers_;  // by tenant
  int programs_ = 0;
};

}  // namespace rocegw::testing
