// SPDX-License-Identifier: Apache-2.0
// Configuration of rocegwd as a checked value, and its reader. A Config that ReadConfig returns
// without problems can be used: ranges, combinations and texts are checked. Conditions of the
// machine (interface exists, bind allowed) are checked when the parts start. Defaults of the
// structs are the defaults of the file (default_config.cc prints them). Start-up only, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/datapath/config.h"
#include "gateway/process/config_document.h"
#include "gateway/process/log/logging.h"

namespace rocegw::daemon {

using datapath::CopyEngineMode;
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
  bool huge_pages = true;             // "auto": used if memory_mb are free
  uint32_t memory_mb = 256;           // size with ordinary pages
  std::vector<std::string> eal_args;  // appended to DPDK's arguments
  bool operator==(const DpdkConfig&) const = default;
};

// Object of the section `static`: desired configuration that holds until an agent sends one.
struct StaticObject {
  std::string kind;  // "tenants"
  std::string json;
  int line = 0;
  bool operator==(const StaticObject&) const = default;
};

// Ports, workers, channels and the default pool are in the base, which belongs to the data path.
struct Config : datapath::Config {
  std::string name;  // name of this gateway; empty: the host name
  std::string runtime_dir = "/run/rocegw";
  LogLevel log_level = LogLevel::kInfo;
  SocketConfig attach_socket = {"/run/rocegw/attach.sock", 0660, ""};
  SocketConfig grpc_socket = {"/run/rocegw/grpc.sock", 0600, ""};
  std::string metrics_address = "127.0.0.1:7474";  // empty: no metrics
  DpdkConfig dpdk;
  std::vector<StaticObject> static_objects;  // not checked yet
  bool operator==(const Config&) const = default;
};

using ConfigResult = process::ParsedConfig<Config>;

// Parses a text. `file` names the source in problems.
ConfigResult ParseConfig(const std::string& yaml, const std::string& file);
ConfigResult ReadConfig(const std::string& file);

// Returns the configuration that holds without a file: every key with its default and an
// explanation. Valid YAML.
std::string_view DefaultConfigText();

}  // namespace rocegw::daemon
