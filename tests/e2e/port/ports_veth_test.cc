// SPDX-License-Identifier: Apache-2.0
// Devices of configured ports, as their interfaces come and go. Needs root.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "gateway/datapath/ports.h"
#include "gateway/session/state/state_rows.h"
#include "tests/support/network/network_namespace.h"
#include "tests/support/network/veth_test.h"

namespace rocegw::datapath {
namespace {

using rocegw::testing::NetworkNamespace;

class PortsVethTest : public rocegw::testing::VethTest {
 protected:
  PortsVethTest() : VethTest(1500) {}

  // GetParam(): mode af_xdp, else udp.
  StatusOr<std::unique_ptr<Ports>> OpenPorts() {
    PortConfig port;
    port.mode = GetParam() ? PortMode::kAfXdp : PortMode::kUdp;
    port.interface = interface_;
    Config config;
    config.ports = {port};
    return Ports::Create(config, port::SteeringTable(1), {});
  }

  static std::string NoteOf(const Ports& ports) {
    session::StateSnapshot snapshot;
    ports.AddRows(snapshot);
    return snapshot.ports.at(0).note;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, PortsVethTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "AfXdp" : "Udp"; });

// Sockets of mode af_xdp stay bound to the removed interface.
TEST_P(PortsVethTest, InterfaceMadeAgain_IsUpOnlyIfThePortServesIt) {
  const NetworkNamespace::Inside inside(*spaces_[0]);
  auto ports = OpenPorts();
  ASSERT_TRUE(ports.ok()) << ports.status().text();
  EXPECT_TRUE((*ports)->device(0).up);
  ASSERT_TRUE(spaces_[0]->Run("ip link del " + interface_).ok());
  EXPECT_EQ((*ports)->Refresh(), std::vector<size_t>{0});
  EXPECT_FALSE((*ports)->device(0).up);
  const Status joined = rocegw::testing::JoinByVeth(*spaces_[0], *spaces_[1], interface_, 1500);
  ASSERT_TRUE(joined.ok()) << joined.text();
  (void)(*ports)->Refresh();
  EXPECT_EQ((*ports)->device(0).up, !GetParam());
  EXPECT_EQ(NoteOf(**ports).find("restart the gateway") != std::string::npos, GetParam())
      << NoteOf(**ports);
}

}  // namespace
}  // namespace rocegw::datapath
