// SPDX-License-Identifier: Apache-2.0
// Configuration of rocegwd as a checked value, and its reader. A Config that ReadConfig returns
// without problems can be used as it is: ranges, combinations and texts are checked; what depends
// on the machine (does the interface exist, may we bind there) is found out when the parts start.
// Default values of the structs are the defaults of the file (default_config.cc shows them to
// people). Start-up only, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/datapath/config.h"
#include "gateway/process/log/logging.h"

namespace rocegw::daemon {

using datapath::GatewaysConfig;
using datapath::InterfaceAddress;
using datapath::LimitsConfig;
using datapath::MacAddress;
using datapath::NeighbourConfig;
using datapath::PoolConfig;
using datapath::PortConfig;
using datapath::PortMode;
using datapath::Segmentation;
using datapath::Steering;
using process::LogLevel;

struct SocketConfig {
  std::string path;
  uint32_t mode = 0;  // permission bits
  std::string owner;  // "user", "user:group", ":group"; empty: as the daemon
  bool operator==(const SocketConfig&) const = default;
};

struct DpdkConfig {
  bool huge_pages = true;             // "auto": used when memory_mb are free
  uint32_t memory_mb = 256;           // taken of ordinary pages
  std::vector<std::string> eal_args;  // appended
  bool operator==(const DpdkConfig&) const = default;
};

// An object of the section `static`: desired configuration that holds until an agent brings some.
struct StaticObject {
  std::string kind;  // "tenants"
  std::string json;
  int line = 0;
  bool operator==(const StaticObject&) const = default;
};

// Ports, workers, what is between gateways and the default pool are the data path's.
struct Config : datapath::Config {
  std::string name;  // of this gateway; empty: the host name
  std::string runtime_dir = "/run/rocegw";
  LogLevel log_level = LogLevel::kInfo;
  SocketConfig attach_socket = {"/run/rocegw/attach.sock", 0660, ""};
  SocketConfig grpc_socket = {"/run/rocegw/grpc.sock", 0600, ""};
  std::string metrics_address = "127.0.0.1:7474";  // empty: no metrics
  DpdkConfig dpdk;
  std::vector<StaticObject> static_objects;  // not looked into yet
  bool operator==(const Config&) const = default;
};

struct ConfigResult {
  Config config;
  std::vector<std::string> problems;  // "FILE:LINE: text"; empty: the configuration is good
};

// file names the source in problems.
ConfigResult ParseConfig(const std::string& yaml, const std::string& file);
ConfigResult ReadConfig(const std::string& file);

// What holds when there is no file: every key with its default value and an explanation. Valid
// YAML.
std::string_view DefaultConfigText();

}  // namespace rocegw::daemon
