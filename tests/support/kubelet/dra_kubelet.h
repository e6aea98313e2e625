// SPDX-License-Identifier: Apache-2.0
// Stand-in of kubelet for a driver of dynamic resource allocation: finds the driver's socket in the
// folder plugins_registry, asks for its information, confirms the registration, and sends claims to
// its endpoint. Speaks the real protocols at real sockets. Each call makes its own connection, as
// kubelet does after a restart of either side. One thread.
#pragma once

#include <string>
#include <vector>

#include "draplugin.pb.h"
#include "pluginregistration.pb.h"

namespace rocegw::testing {

struct ClaimOfAPod {
  std::string name_space;
  std::string name;
  std::string uid;
};

class DraKubelet {
 public:
  // Makes ROOT/plugins and ROOT/plugins_registry.
  explicit DraKubelet(const std::string& root);

  std::string plugins_dir() const { return root_ + "/plugins"; }
  std::string registry_dir() const { return root_ + "/plugins_registry"; }

  // Waits for the driver's socket and registers the driver. Returns false after the time-out, or
  // if kubelet would not accept the driver's type or version.
  bool Register(const std::string& driver);
  const pluginregistration::PluginInfo& info() const { return info_; }

  // Returns the response for the claim; a failed call is an error in it.
  k8s::io::kubelet::pkg::apis::dra::v1::NodePrepareResourceResponse Prepare(
      const ClaimOfAPod& claim) const;
  std::string Unprepare(const ClaimOfAPod& claim) const;

 private:
  const std::string root_;
  pluginregistration::PluginInfo info_;
};

}  // namespace rocegw::testing
