// SPDX-License-Identifier: Apache-2.0
// Configuration of rocegw-controller as a checked value, and its reader. Everything has a default:
// no file is needed. Defaults of the structs are the defaults of the file (default_config.cc prints
// them). Start-up only, one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/process/config_document.h"
#include "gateway/process/log/logging.h"

namespace rocegw::server {

enum class Backend : uint8_t { kSqlite, kEtcd };

struct EtcdConfig {
  std::vector<std::string> endpoints;  // "host:port"
  std::string root = "/rocegw/";
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  bool operator==(const EtcdConfig&) const = default;
};

// Agents' pods of the controller's Kubernetes cluster that join by their tokens.
struct KubernetesConfig {
  bool join = false;
  std::string agent_account;             // "NAMESPACE/NAME"
  std::string audience = "rocegw-join";  // for which the tokens are made
  std::string join_config_map;           // "NAMESPACE/NAME"; empty: the join file is not published
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  bool operator==(const KubernetesConfig&) const = default;
};

// Server that judges the gates of migrations.
struct PrometheusConfig {
  std::string url;         // "http://prometheus:9090"; empty: plans with gates are refused
  std::string ca_file;     // empty: the system's authorities
  std::string token_file;  // bearer token; empty: none
  bool operator==(const PrometheusConfig&) const = default;
};

// Donors of remote memory.
struct DonorsConfig {
  // Gateways whose hosts may donate memory without approval of each donor; "*": all.
  std::vector<std::string> approved_gateways;
  bool operator==(const DonorsConfig&) const = default;
};

struct Config {
  std::string state_dir = "/var/lib/rocegw-controller";
  std::string trust_domain = "rocegw";
  std::string address = "[::]:7471";     // for agents and clients, TLS
  std::vector<std::string> names;        // further names in the controller's certificate
  std::vector<std::string> controllers;  // "host:port" for joining hosts; empty: this host's
  std::string replica_address;           // "host:port" for other controllers; empty: this host's
  std::string admin_socket;              // empty: admin.sock in state_dir
  std::string metrics_address = "127.0.0.1:7472";  // empty: no metrics
  process::LogLevel log_level = process::LogLevel::kInfo;
  Backend backend = Backend::kSqlite;
  EtcdConfig etcd;
  KubernetesConfig kubernetes;
  PrometheusConfig prometheus;
  DonorsConfig donors;
  std::chrono::seconds node_lifetime = std::chrono::hours(24);
  std::chrono::seconds server_lifetime = std::chrono::hours(24 * 90);
  std::chrono::seconds fleet_key_period = std::chrono::hours(24);
  std::chrono::seconds keep_history = std::chrono::hours(1);
  std::chrono::seconds seal_interval{60};
  bool operator==(const Config&) const = default;

  std::string AdminSocket() const {
    return admin_socket.empty() ? state_dir + "/admin.sock" : admin_socket;
  }
};

using ConfigResult = process::ParsedConfig<Config>;

// `file` names the source in problems.
ConfigResult ParseConfig(const std::string& yaml, const std::string& file);
ConfigResult ReadConfig(const std::string& file);

// Returns every key with its default and an explanation. Valid YAML.
std::string_view DefaultConfigText();

// Returns the port of a checked "ADDRESS:PORT".
std::string PortOf(const std::string& address);

// Parses "90s", "15m", "24h", "30d"; returns false for other texts.
bool ReadDuration(const std::string& text, std::chrono::seconds& value);

}  // namespace rocegw::server
