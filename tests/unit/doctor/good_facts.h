// SPDX-License-Identifier: Apache-2.0
// Facts of a host without problems; each test changes one of them, and expects a finding.
#pragma once

#include <gtest/gtest.h>

#include "gateway/doctor/facts.h"
#include "proto/rules/finding.h"

namespace rocegw::doctor {

using rules::Diagnosis;

inline Facts GoodFacts() {
  Facts facts;
  GatewayFacts& gateway = facts.gateway;
  gateway.gateway = "gateways/host-a";
  gateway.version = "0.1.0";
  gateway.workers = {Duration{}, Duration{}};
  gateway.sessions = 256;
  gateway.remap_allowed = true;
  gateway.pools = gateway.trusted_pools = {"tenants/default/pools/default"};
  gateway.send_buffer = 4 << 20;
  gateway.runtime_dir = "/run/rocegw";
  gateway.sockets = {{"/run/rocegw/attach.sock", 0660, true},
                     {"/run/rocegw/grpc.sock", 0600, false}};
  gateway.library_minor = 5;
  gateway.libraries = {{17, "rping", 5}};
  gateway.wants_udp_port = true;
  PortFacts port;
  port.name = "port0";
  port.mode = "udp";
  port.interface = "eth0";
  port.up = true;
  port.interface_mtu = 4200;
  port.path_mtu = 4096;
  port.receive_buffer_asked = port.receive_buffer = 8 << 20;
  gateway.ports = {port};
  HostFacts& host = facts.host;
  host.open_files = 40;
  host.open_files_limit = 1 << 20;
  host.locked_memory_limit = 8 << 20;
  host.processors = 8;
  host.send_buffer_limit = 4 << 20;
  host.userfaultfd_device = true;
  host.clock = {.known = true, .synchronised = true, .worst_error_ns = 2'500'000};
  host.udp_port = {{.own = true, .pid = 0, .command = {}, .uid = 0}};
  host.runtime_dir = {.exists = true, .socket = false, .mode = 0755, .uid = 0, .error = {}};
  for (const SocketFile& socket : gateway.sockets)
    host.sockets[socket.path] = {
        .exists = true, .socket = true, .mode = socket.mode, .uid = 0, .error = {}};
  InterfaceFacts& interface = host.interfaces["eth0"];
  interface.features.driver = "ena";
  for (const char* const name :
       {"tx-checksum-ipv4", "rx-gro", "rx-checksum", "tx-generic-segmentation"})
    interface.features.features[name] = {.on = true, .changeable = true};
  return facts;
}

// Expects these texts in finding and remedy; only a passed check needs no remedy.
inline void Expect(const Diagnosis& diagnosis, gateway::v1::Severity severity,
                   const std::string& found, const std::string& remedy = {}) {
  const bool good = severity == gateway::v1::OK;
  EXPECT_EQ(diagnosis.severity(), severity) << diagnosis.ShortDebugString();
  EXPECT_NE(diagnosis.found().find(found), std::string::npos) << diagnosis.ShortDebugString();
  EXPECT_NE(diagnosis.remedy().find(remedy), std::string::npos) << diagnosis.ShortDebugString();
  EXPECT_EQ(diagnosis.remedy().empty(), good) << diagnosis.ShortDebugString();
  EXPECT_EQ(diagnosis.reason().empty(), good) << diagnosis.ShortDebugString();
}

}  // namespace rocegw::doctor
