// SPDX-License-Identifier: Apache-2.0
// Places that rocegwctl knows by name, in a YAML file of the user: ROCEGW_CONFIG, else
// ~/.config/rocegw/config.yaml. Paths in it are relative to its directory. Written as a whole, by
// renaming.
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
// No file: no contexts.
CallResult ReadContexts(const std::string& file, Contexts& out);
CallResult WriteContexts(const std::string& file, const Contexts& contexts);

// "unix:/run/x.sock" or "HOST:PORT" into the endpoint; false: it is neither.
bool ReadAddress(const std::string& text, Endpoint& out);

// What the command line and the environment say about where to go.
struct Choice {
  bool local = false;          // --local
  std::string gateway_socket;  // --socket
  std::string controller;      // --controller, ROCEGW_CONTROLLER
  std::string context;         // --context, ROCEGW_CONTEXT
  bool proxy = false;          // --proxy: as http_proxy and no_proxy of the environment say
};

inline constexpr char kAdminSocket[] = "/var/lib/rocegw-controller/admin.sock";
inline constexpr char kGatewaySocket[] = "/run/rocegw/grpc.sock";

// The first of: what was chosen, the current context, the controller of this host, the gateway of
// this host.
CallResult ChooseEndpoint(const Choice& choice, Endpoint& out);

}  // namespace rocegw::cli
