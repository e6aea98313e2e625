// SPDX-License-Identifier: Apache-2.0
// Contexts: named endpoints of rocegwctl in a YAML file of the user, ROCEGW_CONFIG or
// ~/.config/rocegw/config.yaml. Paths in it are relative to its directory. The file is written as a
// whole and renamed.
#pragma once

#include <map>
#include <string>

#include "controlplane/cli/client/call_result.h"
#include "controlplane/cli/client/rpc.h"

namespace rocegw::cli {

struct Contexts {
  std::string current;
  // As in the file: paths are not made absolute.
  std::map<std::string, Endpoint> places;
};

std::string ContextsFile();
// A missing file has no contexts.
CallResult ReadContexts(const std::string& file, Contexts& out);
CallResult WriteContexts(const std::string& file, const Contexts& contexts);

// Parses "unix:/run/x.sock" or "HOST:PORT"; returns false for other texts.
bool ReadAddress(const std::string& text, Endpoint& out);

// Endpoint choice of the command line and the environment.
struct Choice {
  bool local = false;          // --local
  std::string gateway_socket;  // --socket
  std::string controller;      // --controller, ROCEGW_CONTROLLER
  std::string context;         // --context, ROCEGW_CONTEXT
  bool proxy = false;          // --proxy: use http_proxy and no_proxy of the environment
};

inline constexpr char kAdminSocket[] = "/var/lib/rocegw-controller/admin.sock";
inline constexpr char kGatewaySocket[] = "/run/rocegw/grpc.sock";

// Chooses the first of: the given choice, the current context, the controller of this host, the
// gateway of this host.
CallResult ChooseEndpoint(const Choice& choice, Endpoint& out);

}  // namespace rocegw::cli
