// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "controlplane/kubeapi/http_call.h"
#include "controlplane/model/resource_name.h"

namespace rocegw::server {
namespace {

using process::CheckAbsolutePath;
using process::CheckSocketPath;
using process::Section;
using std::chrono::hours;
using std::chrono::seconds;

// Limit for names made of it: the authority's and the controllers' names have at most 64 characters
// in X.509.
constexpr size_t kLongestDomain = 50;

bool IsDnsName(const std::string& text) {
  if (text.empty() || text.size() > 253) return false;
  size_t begin = 0;
  for (;;) {
    const size_t dot = text.find('.', begin);
    if (!model::IsDnsLabel(std::string_view(text).substr(begin, dot - begin))) return false;
    if (dot == std::string::npos) return true;
    begin = dot + 1;
  }
}

bool IsAddress(const std::string& text) {
  in6_addr ignored;
  return inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

// Returns two empty texts if it is not HOST:PORT.
std::pair<std::string, std::string> SplitPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {};
  uint32_t port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port > 65535) return {};
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string::npos) return {};
  } else if (host.find(':') != std::string::npos) {
    return {};
  }
  return {host, text.substr(colon + 1)};
}

std::string CheckListenAddress(const std::string& text) {
  if (IsAddress(SplitPort(text).first)) return "";
  return "'" + text + "' is not ADDRESS:PORT (like 0.0.0.0:7471 or [::]:7471)";
}

std::string CheckMetricsAddress(const std::string& text) {
  return text.empty() ? "" : CheckListenAddress(text);
}

std::string CheckEndpoint(const std::string& text) {
  const auto [host, port] = SplitPort(text);
  if (!port.empty() && port != "0" && (IsAddress(host) || IsDnsName(host))) return "";
  return "'" + text + "' is not HOST:PORT (like 192.0.2.1:7471 or [2001:db8::1]:7471)";
}

void Duration(Section& section, std::string_view key, seconds least, seconds most,
              seconds& target) {
  std::string ignored;
  section.Text(
      key,
      [&](const std::string& text) -> std::string {
        seconds value{0};
        if (!ReadDuration(text, value)) {
          return "'" + text + "' is not a duration (like 90s, 15m, 24h or 30d)";
        }
        if (value < least || value > most) {
          return "'" + text + "' is not between " + std::to_string(least.count()) + "s and " +
                 std::to_string(most.count()) + "s";
        }
        target = value;
        return "";
      },
      ignored);
}

void ReadStore(Section& top, Config& config) {
  top.Nested("store", [&](Section& section) {
    section.Choice<Backend>("backend", {{"sqlite", Backend::kSqlite}, {"etcd", Backend::kEtcd}},
                            config.backend);
    section.Nested("etcd", [&](Section& etcd) {
      etcd.TextList("endpoints", [&](const std::string& text) {
        config.etcd.endpoints.push_back(text);
        return CheckEndpoint(text);
      });
      etcd.Text(
          "root",
          [](const std::string& text) {
            return text.starts_with('/') && text.ends_with('/')
                       ? ""
                       : "'" + text + "' must begin and end with '/'";
          },
          config.etcd.root);
      etcd.Text("ca_file", CheckAbsolutePath, config.etcd.ca_file);
      etcd.Text("certificate_file", CheckAbsolutePath, config.etcd.certificate_file);
      etcd.Text("key_file", CheckAbsolutePath, config.etcd.key_file);
      if (config.etcd.certificate_file.empty() != config.etcd.key_file.empty()) {
        etcd.Problem("certificate_file and key_file go together");
      }
      if (!config.etcd.certificate_file.empty() && config.etcd.ca_file.empty()) {
        etcd.Problem("certificate_file needs ca_file");
      }
    });
    if (config.backend == Backend::kEtcd && config.etcd.endpoints.empty()) {
      section.Problem("backend etcd needs etcd.endpoints");
    }
    if (config.backend != Backend::kEtcd && section.Has("etcd")) {
      section.ProblemAt("etcd", "only for backend etcd");
    }
  });
}

// Name of an object in a namespace of Kubernetes, which becomes a part of URLs.
std::string CheckObject(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash != std::string::npos && model::IsDnsLabel(text.substr(0, slash)) &&
      IsDnsName(text.substr(slash + 1))) {
    return "";
  }
  return "'" + text + "' is not NAMESPACE/NAME";
}

std::string CheckAudience(const std::string& text) {
  const bool good = !text.empty() && text.size() <= 253 &&
                    std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 127; });
  return good ? "" : "'" + text + "' is not an audience (visible ASCII characters)";
}

void ReadKubernetes(Section& top, KubernetesConfig& kubernetes) {
  top.Nested("kubernetes", [&](Section& section) {
    section.Bool("join", kubernetes.join);
    section.Text("agent_account", CheckObject, kubernetes.agent_account);
    section.Text("audience", CheckAudience, kubernetes.audience);
    section.Text("join_config_map", CheckObject, kubernetes.join_config_map);
    section.Text("service_account_dir", CheckAbsolutePath, kubernetes.service_account_dir);
    if (kubernetes.join && kubernetes.agent_account.empty())
      section.Problem("join needs agent_account");
  });
}

std::string CheckPrometheusUrl(const std::string& text) {
  std::string problem;
  if (!text.empty()) (void)kubeapi::ReadHttpUrl(text, problem);
  return problem.empty() ? "" : "'" + text + "' is no URL of a Prometheus server: " + problem;
}

void ReadPrometheus(Section& top, PrometheusConfig& prometheus) {
  top.Nested("prometheus", [&](Section& section) {
    section.Text("url", CheckPrometheusUrl, prometheus.url);
    section.Text("ca_file", CheckAbsolutePath, prometheus.ca_file);
    section.Text("token_file", CheckAbsolutePath, prometheus.token_file);
    if (prometheus.url.empty() && (section.Has("ca_file") || section.Has("token_file")))
      section.Problem("ca_file and token_file need url");
    // A token that goes through the network in clear text is everybody's.
    if (prometheus.url.starts_with("http://") &&
        (section.Has("ca_file") || section.Has("token_file")))
      section.Problem("ca_file and token_file need https");
  });
}

void ReadDonors(Section& top, DonorsConfig& donors) {
  top.Nested("donors", [&](Section& section) {
    section.TextList("approved_gateways", [&](const std::string& text) -> std::string {
      donors.approved_gateways.push_back(text);
      return text == "*" || model::IsDnsLabel(text)
                 ? ""
                 : "'" + text + "' is neither the name of a gateway nor *";
    });
  });
}

void ReadTop(Section& top, Config& config) {
  top.Text("state_dir", CheckAbsolutePath, config.state_dir);
  top.Text(
      "trust_domain",
      [](const std::string& text) -> std::string {
        if (IsDnsName(text) && text.size() <= kLongestDomain) return "";
        return "'" + text + "' is not a DNS name of at most " + std::to_string(kLongestDomain) +
               " characters";
      },
      config.trust_domain);
  top.Text("address", CheckListenAddress, config.address);
  top.TextList("names", [&](const std::string& text) -> std::string {
    config.names.push_back(text);
    return IsAddress(text) || IsDnsName(text)
               ? ""
               : "'" + text + "' is neither a DNS name nor an address";
  });
  top.TextList("controllers", [&](const std::string& text) {
    config.controllers.push_back(text);
    return CheckEndpoint(text);
  });
  top.Text("replica_address", CheckEndpoint, config.replica_address);
  top.Text("admin_socket", CheckSocketPath, config.admin_socket);
  if (const std::string wrong = CheckSocketPath(config.AdminSocket()); !wrong.empty()) {
    top.ProblemAt("state_dir", "'" + config.AdminSocket() + "': " + wrong);
  }
  top.Choice("log_level", process::LogLevels(), config.log_level);
  top.Nested("metrics", [&](Section& section) {
    section.Text("address", CheckMetricsAddress, config.metrics_address);
  });
  ReadStore(top, config);
  ReadKubernetes(top, config.kubernetes);
  ReadPrometheus(top, config.prometheus);
  ReadDonors(top, config.donors);
  top.Nested("certificates", [&](Section& section) {
    Duration(section, "node_lifetime", seconds(1), hours(24 * 90), config.node_lifetime);
    Duration(section, "server_lifetime", seconds(1), hours(24 * 3650), config.server_lifetime);
  });
  Duration(top, "fleet_key_period", seconds(12), hours(24 * 365), config.fleet_key_period);
  Duration(top, "keep_history", seconds(60), hours(24 * 365), config.keep_history);
  Duration(top, "seal_interval", seconds(1), hours(24), config.seal_interval);
}

}  // namespace

bool ReadDuration(const std::string& text, seconds& value) {
  int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, count);
  constexpr int64_t kMost = 1 << 30;
  if (parsed.ec != std::errc() || parsed.ptr + 1 != end || count < 0 || count > kMost) return false;
  switch (*parsed.ptr) {
    case 's':
      value = seconds(count);
      return true;
    case 'm':
      value = std::chrono::minutes(count);
      return true;
    case 'h':
      value = hours(count);
      return true;
    case 'd':
      value = hours(24 * count);
      return true;
    default:
      return false;
  }
}

std::string PortOf(const std::string& address) { return SplitPort(address).second; }

ConfigResult ParseConfig(const std::string& yaml, const std::string& file) {
  return process::ParseConfigText<Config>(yaml, file, ReadTop);
}

ConfigResult ReadConfig(const std::string& file) {
  return process::ReadConfigFile<Config>(file, ReadTop);
}

}  // namespace rocegw::server
