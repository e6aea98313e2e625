// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/host_addresses.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "controlplane/identity/server_certificate.h"
#include "controlplane/store/random_uuid.h"

namespace rocegw::server {
namespace {

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

}  // namespace

std::vector<std::string> OwnAddresses(const Config& config, int port) {
  const auto with_port = [port](const std::string& host) {
    const bool v6 = host.find(':') != std::string::npos;
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  };
  const std::string host = config.address.substr(0, config.address.rfind(':'));
  if (host != "[::]" && host != "0.0.0.0") return {host + ":" + std::to_string(port)};
  std::vector<std::string> found;
  const std::vector<std::string> names = identity::NamesOfHost();
  for (const std::string& name : names) {
    in6_addr ignored;
    if (inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
        inet_pton(AF_INET6, name.c_str(), &ignored) == 1) {
      found.push_back(with_port(name));
    }
  }
  if (found.empty()) found.push_back(with_port(names.empty() ? "localhost" : names.front()));
  return found;
}

std::vector<std::string> ReachableAt(const Config& config, int port) {
  return config.controllers.empty() ? OwnAddresses(config, port) : config.controllers;
}

std::string Candidate() { return HostName() + " process " + std::to_string(getpid()); }

std::string ReplicaId() { return HostName() + "-" + store::RandomUuid().substr(0, 8); }

}  // namespace rocegw::server
