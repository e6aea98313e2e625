// SPDX-License-Identifier: Apache-2.0
// Configuration of rocegw-agent as a checked value, and its reader. Defaults of the struct are the
// defaults of the file. Start-up only, one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/expose/attach_rules.h"
#include "agent/kube/kubernetes.h"
#include "gateway/process/config_document.h"
#include "gateway/process/log/logging.h"

namespace rocegw::agent {

struct Config {
  std::string state_dir = "/var/lib/rocegw-agent";
  std::string gateway_socket = "/run/rocegw/grpc.sock";
  std::string fleet_keys_file;                     // for the gateway; empty: keys are not asked for
  std::string metrics_address = "127.0.0.1:7473";  // empty: no metrics
  process::LogLevel log_level = process::LogLevel::kInfo;
  std::string
      name;  // name of the gateway when joining; empty: from the join file, else the host name
  std::vector<AttachRule> attach_rules;  // for pools with identity: REQUIRED
  KubernetesSettings kubernetes;
  std::string adapters_dir;  // programs for migrations; empty: none is run
  std::string donors_dir;    // donors of memory announce themselves there; empty: none
  std::string join_file;     // used if the host has not joined yet; empty: none
  bool operator==(const Config&) const = default;
};

using ConfigResult = process::ParsedConfig<Config>;

// `file` names the source in problems.
ConfigResult ParseConfig(const std::string& yaml, const std::string& file);
ConfigResult ReadConfig(const std::string& file);
// Returns every key with its default and an explanation. Valid YAML.
std::string_view DefaultConfigText();

}  // namespace rocegw::agent
