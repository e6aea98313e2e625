// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/port_checks.h"

#include <gtest/gtest.h>

#include "tests/unit/doctor/good_facts.h"

namespace rocegw::doctor {
namespace {

using gateway::v1::FAIL;
using gateway::v1::OK;
using gateway::v1::WARN;

class PortChecks : public ::testing::Test {
 protected:
  PortFacts& port() { return facts_.gateway.ports[0]; }
  InterfaceFacts& interface() { return facts_.host.interfaces["eth0"]; }
  Facts facts_ = GoodFacts();
};

TEST_F(PortChecks, UdpPort_OfSomebodyElse_IsNamedAndHowToEndIt) {
  Expect(CheckUdpPort(facts_), OK, "this gateway's, 1 socket");
  facts_.host.udp_port.push_back({.own = false, .pid = 33, .command = "python3", .uid = 7});
  Expect(CheckUdpPort(facts_), FAIL, "held by process 33 (python3) of user 7", "kill 33");
  facts_.host.udp_port.back().pid = 0;
  Expect(CheckUdpPort(facts_), FAIL, "the kernel or a process of another container", "ss -lunpe");
  facts_.host.rxe_devices = {"rxe0"};
  Expect(CheckUdpPort(facts_), FAIL, "soft-RoCE (rxe0)", "rdma link delete rxe0");
  facts_.host.udp_port.clear();
  Expect(CheckUdpPort(facts_), FAIL, "nobody holds");
  facts_.gateway.wants_udp_port = false;
  Expect(CheckUdpPort(facts_), OK, "no port needs");
}

TEST_F(PortChecks, Link_Down_IsToldWithTheRemedyOfThePort) {
  Expect(CheckLink(facts_, port()), OK, "udp on eth0 is up");
  EXPECT_EQ(CheckLink(facts_, port()).object(), "gateways/host-a/ports/port0");
  port().up = false;
  Expect(CheckLink(facts_, port()), FAIL, "eth0 is down", "ip link set eth0 up");
  port().note = "no address: ip address add";
  Expect(CheckLink(facts_, port()), FAIL, "eth0 is down", "ip address add");
}

TEST_F(PortChecks, PathMtu_TooSmallWarns_SmallerThanQueuePairsHave_Fails) {
  Expect(CheckPathMtu(facts_, port()), OK, "MTU 4200, path MTU 4096");
  port().interface_mtu = 1500;
  port().path_mtu = 1024;
  Expect(CheckPathMtu(facts_, port()), OK, "MTU 1500, path MTU 1024; an MTU of 4200");
  port().longer_qps = 3;
  port().longest_path_mtu = 4096;
  Expect(CheckPathMtu(facts_, port()), FAIL, "but 3 queue pairs have 4096",
         "ip link set eth0 mtu 4200");
  port().longer_qps = 0;
  port().path_mtu = 512;
  Expect(CheckPathMtu(facts_, port()), WARN, "path MTU 512", "ip link set eth0 mtu 1500");
}

TEST_F(PortChecks, Addresses_BeyondTheGidTable_Warn) {
  Expect(CheckAddresses(facts_, port()), OK, "each has a GID");
  port().addresses_without_gid = 7;
  Expect(CheckAddresses(facts_, port()), WARN, "7 addresses of eth0 have no GID",
         "remove addresses from eth0");
}

TEST_F(PortChecks, ReceiveBuffer_NotGrantedOrOverrun_Warns) {
  Expect(CheckReceiveBuffer(facts_, port()), OK, "8388608 of 8388608");
  port().receive_overflows = 9;
  Expect(CheckReceiveBuffer(facts_, port()), WARN, "9 packets did not fit", "more workers");
  port().receive_buffer = 212992;
  Expect(CheckReceiveBuffer(facts_, port()), WARN, "212992 of 8388608", "rmem_max=8388608");
  port().receive_buffer_asked = 0;
  Expect(CheckReceiveBuffer(facts_, port()), OK, "its own");
}

TEST_F(PortChecks, Offloads_SwitchedOff_AreNamedWithTheCommand) {
  Expect(CheckOffloads(facts_, port()), OK, "on at eth0 (ena)");
  interface().features.features["rx-gro"].on = false;
  Expect(CheckOffloads(facts_, port()), WARN, "gro off at eth0 (ena)", "ethtool -K eth0 gro on");
  interface().features.features["tx-checksum-ipv4"].on = false;
  Expect(CheckOffloads(facts_, port()), WARN, "tx, gro off", "ethtool -K eth0 tx on gro on");
  // Name of the same feature in other drivers.
  interface().features.features["tx-checksum-ip-generic"] = {.on = true, .changeable = true};
  Expect(CheckOffloads(facts_, port()), WARN, "gro off", "ethtool -K eth0 gro on");
}

TEST_F(PortChecks, Offloads_ThatTheDriverLacks_AreNoFault) {
  interface().features.features["rx-gro"] = {.on = false, .changeable = false};
  Expect(CheckOffloads(facts_, port()), OK, "ena lacks gro, all else is on");
}

TEST_F(PortChecks, Offloads_OfReception_DoNotMatterToSoftware) {
  interface().features.driver = "veth";
  interface().features.features["rx-gro"].on = false;
  interface().features.features["rx-checksum"].on = false;
  Expect(CheckOffloads(facts_, port()), OK, "on at eth0 (veth)");
  interface().features.features["tx-generic-segmentation"].on = false;
  Expect(CheckOffloads(facts_, port()), WARN, "gso off at eth0 (veth)");
}

TEST_F(PortChecks, Offloads_OverDpdk_AreNotTheKernels) {
  interface().features.features["rx-gro"].on = false;
  port().mode = "af_packet";
  Expect(CheckOffloads(facts_, port()), OK, "none");
}

TEST_F(PortChecks, Neighbours_ThatDoNotAnswer_Warn_ARouterFails) {
  Expect(CheckNeighbours(facts_, port()), OK, "answer");
  for (uint32_t i = 1; i <= 6; ++i)
    interface().failed_neighbours.push_back(wire::Gid::FromV4(0xC0000200 + i));
  Expect(CheckNeighbours(facts_, port()), WARN,
         "6 do not answer: 192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4, 192.0.2.5 and 1 more",
         "ip neighbour show dev eth0");
  interface().failed_routers = {wire::Gid::FromV4(0xC0000201)};
  Expect(CheckNeighbours(facts_, port()), FAIL, "the router 192.0.2.1 does not answer");
  port().interface = "";
  Expect(CheckNeighbours(facts_, port()), OK, "none");
}

}  // namespace
}  // namespace rocegw::doctor
