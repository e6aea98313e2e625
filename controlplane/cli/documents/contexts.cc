// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/contexts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace rocegw::cli {
namespace {

constexpr std::pair<const char*, std::string Endpoint::*> kKeys[] = {
    {"address", &Endpoint::address},   {"socket", &Endpoint::socket},
    {"ca_file", &Endpoint::ca_file},   {"certificate_file", &Endpoint::certificate_file},
    {"key_file", &Endpoint::key_file}, {"server_name", &Endpoint::server_name}};

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

CallResult Wrong(const std::string& file, const std::string& what) {
  return {kUsage, file + ": " + what, {}};
}

CallResult ReadPlace(const std::string& file, const std::string& name, const YAML::Node& node,
                     Endpoint& place) {
  if (!node.IsMap()) return Wrong(file, "context '" + name + "' is not a map");
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    std::string Endpoint::*member = nullptr;
    for (const auto& [known, where] : kKeys) {
      if (key == known) member = where;
    }
    if (member == nullptr) return Wrong(file, "context '" + name + "': unknown key '" + key + "'");
    place.*member = entry.second.as<std::string>();
  }
  if (place.address.empty() == place.socket.empty()) {
    return Wrong(file, "context '" + name + "' needs an address or a socket");
  }
  return {};
}

// Paths in the file are relative to it.
void Resolve(const std::string& file, Endpoint& place) {
  const auto directory = std::filesystem::path(file).parent_path();
  for (std::string Endpoint::*member :
       {&Endpoint::socket, &Endpoint::ca_file, &Endpoint::certificate_file, &Endpoint::key_file}) {
    if (!(place.*member).empty()) place.*member = directory / (place.*member);
  }
}

Endpoint LocalGateway(const Choice& choice) {
  Endpoint endpoint;
  endpoint.what = "gateway";
  endpoint.socket = choice.gateway_socket;
  if (endpoint.socket.empty()) endpoint.socket = Environment("ROCEGW_GRPC_SOCKET");
  if (endpoint.socket.empty()) endpoint.socket = kGatewaySocket;
  return endpoint;
}

}  // namespace

std::string ContextsFile() {
  if (std::string file = Environment("ROCEGW_CONFIG"); !file.empty()) return file;
  std::string base = Environment("XDG_CONFIG_HOME");
  if (base.empty()) base = Environment("HOME") + "/.config";
  return base + "/rocegw/config.yaml";
}

CallResult ReadContexts(const std::string& file, Contexts& out) {
  out = {};
  if (access(file.c_str(), F_OK) != 0) return {};
  try {
    const YAML::Node root = YAML::LoadFile(file);
    if (!root.IsMap()) return Wrong(file, "is not a map with 'contexts'");
    if (root["current_context"]) out.current = root["current_context"].as<std::string>();
    for (const auto& entry : root["contexts"]) {
      const auto name = entry.first.as<std::string>();
      if (auto result = ReadPlace(file, name, entry.second, out.places[name]); !result.ok()) {
        return result;
      }
    }
  } catch (const YAML::Exception& error) {
    return Wrong(file, error.what());
  }
  return {};
}

CallResult WriteContexts(const std::string& file, const Contexts& contexts) {
  YAML::Emitter text;
  text << YAML::BeginMap;
  if (!contexts.current.empty()) {
    text << YAML::Key << "current_context" << YAML::Value << contexts.current;
  }
  text << YAML::Key << "contexts" << YAML::Value << YAML::BeginMap;
  for (const auto& [name, place] : contexts.places) {
    text << YAML::Key << name << YAML::Value << YAML::BeginMap;
    for (const auto& [key, member] : kKeys) {
      if (!(place.*member).empty()) text << YAML::Key << key << YAML::Value << place.*member;
    }
    text << YAML::EndMap;
  }
  text << YAML::EndMap << YAML::EndMap;

  const auto failed = [&] { return CallResult{kFailed, file + ": " + std::strerror(errno), {}}; };
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  const std::string fresh = file + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed();
  const std::string bytes = std::string(text.c_str(), text.size()) + "\n";
  const bool written = write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (close(fd) != 0 || !written || rename(fresh.c_str(), file.c_str()) != 0) return failed();
  return {};
}

bool ReadAddress(const std::string& text, Endpoint& out) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix) && text.size() > kUnix.size()) {
    out.socket = text.substr(kUnix.size());
    return true;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return false;
  out.address = text;
  return true;
}

CallResult ChooseEndpoint(const Choice& choice, Endpoint& out) {
  if (choice.local || !choice.gateway_socket.empty()) {
    out = LocalGateway(choice);
    return {};
  }
  std::string controller = choice.controller;
  std::string context = choice.context;
  if (controller.empty() && context.empty()) {
    controller = Environment("ROCEGW_CONTROLLER");
    context = Environment("ROCEGW_CONTEXT");
  }
  if (!controller.empty()) {
    if (ReadAddress(controller, out) && !out.socket.empty()) return {};
    return {kUsage,
            "--controller: '" + controller +
                "' is not unix:PATH; an address needs certificates: rocegwctl config set-context",
            {}};
  }
  const std::string file = ContextsFile();
  Contexts contexts;
  if (auto result = ReadContexts(file, contexts); !result.ok()) return result;
  if (context.empty()) context = contexts.current;
  if (!context.empty()) {
    const auto place = contexts.places.find(context);
    if (place == contexts.places.end()) {
      return {kUsage, file + " has no context '" + context + "'", {}};
    }
    out = place->second;
    out.proxy = choice.proxy;
    Resolve(file, out);
    return {};
  }
  struct stat info {};
  if (stat(kAdminSocket, &info) == 0) {
    out.socket = kAdminSocket;
  } else {
    out = LocalGateway(choice);
  }
  return {};
}

}  // namespace rocegw::cli
