// SPDX-License-Identifier: Apache-2.0
#include "agent/supervise/config.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "controlplane/model/resource_name.h"
#include "gateway/process/yaml_section.h"

namespace rocegw::agent {
namespace {

using process::Problems;
using process::Section;

std::string CheckAbsolutePath(const std::string& text) {
  return text.starts_with('/') ? "" : "'" + text + "' is not an absolute path";
}

std::string CheckOptionalPath(const std::string& text) {
  return text.empty() ? "" : CheckAbsolutePath(text);
}

std::string CheckName(const std::string& text) {
  if (text.empty() || model::IsDnsLabel(text)) return "";
  return "'" + text + "' is not a DNS label (a-z, 0-9 and '-', at most 63)";
}

std::string CheckAnything(const std::string&) { return ""; }

}  // namespace

ConfigResult ParseConfig(const std::string& yaml, const std::string& file) {
  ConfigResult result;
  Problems problems(file);
  try {
    const YAML::Node root = YAML::Load(yaml);
    Section top(problems, root, "");
    Config& config = result.config;
    top.Text("state_dir", CheckAbsolutePath, config.state_dir);
    top.Text("gateway_socket", CheckAbsolutePath, config.gateway_socket);
    top.Choice("log_level", process::LogLevels(), config.log_level);
    top.Text("name", CheckName, config.name);
    top.Text("join_file", CheckOptionalPath, config.join_file);
    top.Nested("metrics", [&](Section& metrics) {
      metrics.Text("address", CheckAnything, config.metrics_address);
    });
    top.Finish();
  } catch (const YAML::Exception& error) {
    problems.Add(error.mark.is_null() ? 0 : error.mark.line + 1, error.msg);
  }
  result.problems = problems.Take();
  return result;
}

ConfigResult ReadConfig(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) {
    ConfigResult result;
    result.problems.push_back(file + ": " + std::strerror(errno));
    return result;
  }
  return ParseConfig(text.str(), file);
}

std::string_view DefaultConfigText() {
  return R"(# Configuration of rocegw-agent. Every key is optional; shown are the defaults.
# Check a file with: rocegw-agent --check-config --config FILE

# Certificate and key of this host, and the last good configuration of its gateway.
state_dir: /var/lib/rocegw-agent

# Where the gateway of this host listens (grpc_socket of its configuration).
gateway_socket: /run/rocegw/grpc.sock

# trace, debug, info, warn, error. SIGHUP reads this key again.
log_level: info

# Name of this host's gateway in the fleet, a DNS label, when it joins. Empty: the join file's, else the host name.
name: ""

# A join file that is taken at the start when this host has not joined yet; empty: it joins with rocegw-agent --join FILE.
join_file: ""

# /metrics for Prometheus, /livez and /readyz. Empty address: off.
metrics:
  address: 127.0.0.1:7473
)";
}

}  // namespace rocegw::agent
